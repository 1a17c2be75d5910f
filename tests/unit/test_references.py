"""What varies between two uninterrupted runs is told from what should not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from chaos.checkpoints.process import Examiner
from chaos.model import FileRole, FileState, Target, TargetProfile
from chaos.references import _Comparison
from chaos.roles import FileNames

TARGET = Target(command=("x", "{out}"), resume_command=("x", "{out}"), checkpoints=("ck*.npz",), final=("final.npz",))


@pytest.fixture(name="examiner")
def start_examiner() -> Iterator[Examiner]:
    """Give an examiner process."""
    with Examiner() as examiner:
        yield examiner


def leave(out: Path, *, w: float, wall: float, final: float) -> tuple[Path, dict[str, FileState]]:
    """Write what a run leaves: a checkpoint of weights and a time, and a final file of one."""
    out.mkdir()
    np.savez(out / "ck.npz", w=np.array(w), wall=np.array(wall))
    np.savez(out / "final.npz", w=np.array(final))
    roles = {"ck.npz": FileRole.CHECKPOINT, "final.npz": FileRole.FINAL}
    return out, {
        path: FileState(path=path, key=path, role=role, size_bytes=1, is_whole=True) for path, role in roles.items()
    }


@pytest.mark.parametrize(
    ("w", "wall", "final", "varying"),
    [
        (1.0, 8.0, 1.0, {"ck.npz": {"wall"}}),
        (1.0, 8.0, 2.0, {}),
        (3.0, 8.0, 1.0, {}),
        (1.0, 7.0, 1.0, {}),
    ],
    ids=["a time", "other final bits", "most tensors", "nothing"],
)
def test_an_array_of_a_checkpoint_that_varies(
    w: float, wall: float, final: float, varying: dict[str, set[str]], examiner: Examiner, tmp_path: Path
) -> None:
    """It is left out where final bits are equal, and at most half of the checkpoint's tensors vary."""
    comparison = _Comparison(FileNames(TARGET, TargetProfile()), examiner)
    first = leave(tmp_path / "a", w=1.0, wall=7.0, final=1.0)
    comparison.compare([first, leave(tmp_path / "b", w=w, wall=wall, final=final)])
    assert comparison.varying_leaves == varying
    assert bool(comparison.differing_tensors) is (final != 1.0)

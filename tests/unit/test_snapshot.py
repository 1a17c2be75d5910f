"""Crash states: what counts, what does not, and when two are the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from chaos.checkpoints.examine import Examination
from chaos.model import FileRole, FileState, Target, TargetProfile
from chaos.roles import FileNames
from chaos.states.snapshot import Photographer, state_digest

TARGET = Target(
    command=("x",), resume_command=("x",), checkpoints=("*.ck", "step*"), final=("final",), ignore=("*.log",)
)
STATE = FileState(path="a.ck", key="a.ck", role=FileRole.CHECKPOINT, size_bytes=5, is_whole=True, digest="d")


class FakeExaminer:
    """An examiner that takes each file for whole and its size for its content."""

    def examine(self, path: Path, without: frozenset[str]) -> Any:
        """Look at nothing but the size."""
        assert without == frozenset()
        size = path.stat().st_size
        return Examination(is_whole=True, format="unknown", digest=f"{size:x}", size_bytes=size)

    def verify(self, command: tuple[str, ...], path: Path, deadline_s: float) -> tuple[bool, str]:
        """Find each checkpoint broken."""
        return False, f"{command[0]} says no of {path.name} in {deadline_s}"


def photographer(out: Path, verify: tuple[str, ...] = ()) -> Photographer:
    """Return a photographer of a folder."""
    examiner: Any = FakeExaminer()
    names = FileNames(TARGET, TargetProfile())
    return Photographer(out, examiner, names.name, verify=verify, deadline_s=3.0, varying_leaves={})


def test_watched_files_are_told_from_others(tmp_path: Path) -> None:
    """Checkpoints, folders of them and final files are examined, sorted by name; the rest is only listed."""
    for name in ("b.ck", "a.ck", "final", "x.log", "deep/er/note", "deep/c.ck", "step1/part"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
    snapshot = photographer(tmp_path).take()
    assert [state.path for state in snapshot.files if state.role is FileRole.FINAL] == ["final"]
    assert {"a.ck", "b.ck", "step1"} <= {state.path for state in snapshot.files}
    assert {"x.log", "deep/er/note"} <= set(snapshot.other_files)
    assert [state.path for state in photographer(tmp_path).checkpoints()] == sorted(
        state.path for state in snapshot.files if state.role is FileRole.CHECKPOINT
    )


def test_a_verify_command_has_the_last_word(tmp_path: Path) -> None:
    """Where the target names a command that tells whole from broken, that is what counts."""
    (tmp_path / "a.ck").write_bytes(b"")
    (state,) = photographer(tmp_path, ("judge",)).take().files
    assert (state.is_whole, state.reason) == (False, "judge says no of a.ck in 3.0")


def test_odd_folders_are_no_trouble(tmp_path: Path) -> None:
    """A folder that is gone is empty, and a name that is no UTF-8 is spelt so that it can be stored."""
    assert photographer(tmp_path / "gone").take().files == ()
    (tmp_path / os.fsdecode(b"\xff.ck")).touch()
    (state,) = photographer(tmp_path).take().files
    assert state.path == state.key == "\\udcff.ck"
    assert len(photographer(tmp_path).take().digest) == 32


def test_the_digest_depends_on_what_is_there_and_nothing_else() -> None:
    """Another content, name or role gives another digest; order, time and size in bytes do not."""
    other = replace(STATE, path="b.ck", key="b.ck")
    base = state_digest([STATE, other])
    assert state_digest([other, STATE]) == base
    assert state_digest([replace(STATE, modified_ns=9, size_bytes=6), other]) == base
    changes: list[dict[str, Any]] = [{"digest": "e"}, {"key": "c.ck"}, {"role": FileRole.TEMPORARY}]
    digests = {state_digest([replace(STATE, **change), other]) for change in changes}
    assert len(digests | {base, state_digest([STATE])}) == 5


def test_a_damaged_file_with_a_varying_name_counts_by_its_name() -> None:
    """Its bytes hold its own name, which differs from run to run; one with a fixed name counts by its bytes."""
    varying = replace(STATE, path="tmp123", key="tmp{}", is_whole=False)
    assert state_digest([varying]) == state_digest([replace(varying, path="tmp456", digest="e")])
    assert state_digest([varying]) != state_digest([replace(varying, is_whole=True)])
    fixed = replace(STATE, is_whole=False)
    assert state_digest([fixed]) != state_digest([replace(fixed, digest="e")])

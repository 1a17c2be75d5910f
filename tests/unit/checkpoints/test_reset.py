"""One part of a checkpoint is reset where it lies: it and nothing else is zero then, and the file is still whole."""

from __future__ import annotations

import json
import pickle
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from chaos.checkpoints.examine import examine
from chaos.checkpoints.parts import part_by_name
from chaos.checkpoints.process import Examiner
from chaos.checkpoints.reset import parts_of, reset_part
from chaos.errors import UsageError

ARRAYS = {"weights": np.ones(5), "momentum": np.arange(1.0, 6.0), "step": np.array(7), "keys": np.arange(3, dtype="u4")}
VERSION, WORDS, GAUSS = random.Random(3).getstate()


def save_npz(path: Path) -> None:
    """Save arrays in an archive."""
    np.savez(path, **ARRAYS)


def save_packed(path: Path) -> None:
    """Save arrays in an archive, each record compressed."""
    np.savez_compressed(path, **ARRAYS)


def save_tensors(path: Path) -> None:
    """Save tensors without any structure."""
    save_file({name: torch.from_numpy(np.atleast_1d(array).copy()) for name, array in ARRAYS.items()}, path)


def save_torch(path: Path) -> None:
    """Save tensors, numbers and a list of numbers by torch; one tensor is seen in columns."""
    columns = torch.arange(1.0, 7.0).reshape(2, 3).t()
    torch.save({"weights": torch.ones(5), "momentum": columns, "step": 7, "keys": [3, 1000, 2.5], "run": "a"}, path)


def save_json(path: Path) -> None:
    """Save numbers as text."""
    found = {
        "weights": [1.0, 2.5],
        "momentum": [{"a": 3}],
        "step": 7,
        "keys": [VERSION, list(WORDS), GAUSS],
        "run": "a",
    }
    path.write_text(json.dumps(found))


def save_pickle(path: Path) -> None:
    """Save arrays and numbers in a pickle."""
    data = pickle.dumps({"weights": np.ones(5), "momentum": np.arange(1.0, 6.0), "step": 70_000, "keys": (1, 2**80)})
    path.write_bytes(data)


FORMATS: dict[str, Callable[[Path], None]] = {
    "a.npz": save_npz,
    "packed.npz": save_packed,
    "a.safetensors": save_tensors,
    "a.pt": save_torch,
    "a.json": save_json,
    "a.pkl": save_pickle,
}


def shown(path: Path) -> dict[str, str]:
    """Return each leaf's digest."""
    found = examine(path)
    assert found.is_whole, found.reason
    return {leaf.name: leaf.digest for leaf in found.leaves}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("part", ["weights", "momentum", "step", "keys"])
def test_a_part_and_nothing_else_is_reset(name: str, part: str, tmp_path: Path) -> None:
    """All of its numbers change, no other leaf does, checksums and times are right, and again nothing would change."""
    path = tmp_path / name
    FORMATS[name](path)
    before, status = shown(path), path.stat()
    assert part in parts_of(path)
    changed = reset_part(path, part)
    after = shown(path)
    different = {leaf for leaf in before if before[leaf] != after[leaf]}
    assert before.keys() == after.keys()
    assert len(different) == changed > 0
    assert all(leaf.split(".")[0] == part for leaf in different)
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
    assert reset_part(path, part) == 0


def test_the_values_are_zero(tmp_path: Path) -> None:
    """As whoever reads the file sees them."""
    path, torch_path, json_path = tmp_path / "a.npz", tmp_path / "a.pt", tmp_path / "a.json"
    save_packed(path)
    save_torch(torch_path)
    save_json(json_path)
    reset_part(path, "momentum")
    for part in ("momentum", "step", "keys"):
        reset_part(torch_path, part)
        reset_part(json_path, part)
    with np.load(path) as found:
        assert not found["momentum"].any()
        assert found["weights"].all()
    state = torch.load(torch_path, weights_only=True)
    assert not state["momentum"].any()
    assert (state["step"], state["keys"], state["run"]) == (0, [0, 0, 0.0], "a")
    found = json.loads(json_path.read_text())
    assert (found["momentum"], found["step"], found["run"]) == ([{"a": 0}], 0, "a")
    assert not any(found["keys"][1])
    assert found["weights"] == [1.0, 2.5]


def test_elements_between_a_tensors_own_are_kept(tmp_path: Path) -> None:
    """Two tensors that lie in one storage by turns are reset one by one."""
    path = tmp_path / "a.pt"
    both = torch.arange(1.0, 9.0)
    torch.save({"even": both[::2], "odd": both[1::2]}, path)
    reset_part(path, "even")
    state = torch.load(path, weights_only=True)
    assert state["even"].tolist() == [0.0] * 4
    assert state["odd"].tolist() == [2.0, 4.0, 6.0, 8.0]


def test_members_of_a_folder_are_its_parts(tmp_path: Path) -> None:
    """A file of a folder is taken out of it."""
    save_tensors(tmp_path / "model.safetensors")
    save_torch(tmp_path / "optimizer.pt")
    assert parts_of(tmp_path) == ("model.safetensors", "optimizer.pt")
    assert reset_part(tmp_path, "optimizer.pt") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize(("part", "reason"), [("run", "it holds no number"), ("nothing", "has no part nothing")])
def test_what_cannot_be_reset_is_told(part: str, reason: str, tmp_path: Path) -> None:
    """A text has no zero, and a part must be there."""
    path = tmp_path / "a.json"
    save_json(path)
    with pytest.raises(UsageError, match=reason):
        reset_part(path, part)


def test_a_damaged_checkpoint_is_left_alone(tmp_path: Path) -> None:
    """What is not whole has no parts."""
    path = tmp_path / "a.npz"
    save_npz(path)
    path.write_bytes(path.read_bytes()[:-30])
    before = path.read_bytes()
    with pytest.raises(UsageError, match="no part of"):
        reset_part(path, "step")
    with pytest.raises(UsageError, match="no part of"):
        parts_of(path)
    assert path.read_bytes() == before


def test_shared_bytes_are_not_reset_for_one_part_alone(tmp_path: Path) -> None:
    """Where two parts are the same memory, what changes one changes the other."""
    path = tmp_path / "a.pt"
    tied = torch.ones(3)
    torch.save({"embedding": tied, "head": tied, "step": 1}, path)
    with pytest.raises(UsageError, match="cannot be reset apart from head"):
        reset_part(path, "embedding")


def test_the_examiner_resets_in_its_child(examiner: Examiner, tmp_path: Path) -> None:
    """Parts, a reset, and what cannot be, through the process with limits."""
    path = tmp_path / "a.pt"
    save_torch(path)
    assert examiner.parts(path) == ("keys", "momentum", "run", "step", "weights")
    assert examiner.reset(path, "keys") == 3
    assert examiner.reset(path, "keys") == 0
    with pytest.raises(UsageError, match="it holds no number"):
        examiner.reset(path, "run")


@pytest.mark.parametrize(
    ("names", "prefix", "expected"),
    [
        (["step", "w.a", "w.b"], "", {"step", "w"}),
        (["opt/m/a", "opt/v/a", "step"], "", {"opt", "step"}),
        (["state.step", "state.w.a"], "", {"state.step", "state.w"}),
        (["x.optimizer.state.0.exp_avg", "x.step"], "x.pt", {"optimizer.state.*.exp_avg"}),
        (["weights"], "", {"weights"}),
    ],
)
def test_parts_are_the_first_keys_that_tell_leaves_apart(names: list[str], prefix: str, expected: set[str]) -> None:
    """Below what all names share."""
    if prefix:
        names = [f"{prefix}/{name.removeprefix('x.')}" for name in names]
        expected = {*expected, "step"}
    assert set(part_by_name(names, prefix).values()) == expected


def test_an_optimizers_state_counts_by_its_keys(training_state: dict[str, Any], tmp_path: Path) -> None:
    """Over all parameters together, as an engineer would name it."""
    path = tmp_path / "resume.pt"
    torch.save(training_state, path)
    assert {name for name in parts_of(path) if name.startswith("optimizer")} == {
        "optimizer.param_groups",
        "optimizer.state.*.exp_avg",
        "optimizer.state.*.exp_avg_sq",
        "optimizer.state.*.step",
    }
    reset_part(path, "optimizer.state.*.exp_avg")
    state = torch.load(path, weights_only=True)["optimizer"]["state"]
    assert not any(each["exp_avg"].any() for each in state.values())
    assert all(each["exp_avg_sq"].any() for each in state.values())

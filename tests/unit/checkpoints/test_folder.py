"""Folders: those of transformers and of torch.distributed.checkpoint, and what makes them not whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

from chaos.checkpoints.examine import examine


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """Give a folder as transformers writes it: two shards with an index, optimizer, state, a text."""
    folder = tmp_path / "checkpoint-30"
    folder.mkdir()
    save_file({"w": torch.ones(2, 2)}, folder / "model-00001-of-00002.safetensors")
    save_file({"b": torch.zeros(2)}, folder / "model-00002-of-00002.safetensors")
    weight_map = {"w": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    torch.save({"step": torch.tensor(30.0)}, folder / "optimizer.pt")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 30}))
    (folder / "merges.txt").write_text("a b\n")
    (folder / "empty.mark").write_bytes(b"")
    return folder


def test_a_folder_is_its_members(sharded: Path) -> None:
    """Leaves are named by file and path; a file of an unknown format counts by its bytes."""
    found = examine(sharded)
    assert (found.is_whole, found.reason, found.format) == (True, "", "folder")
    assert {
        "model-00001-of-00002.safetensors/w",
        "optimizer.pt/step",
        "trainer_state.json/global_step",
        "merges.txt",
        "empty.mark",
    } <= {leaf.name for leaf in found.leaves}
    assert found.size_bytes == sum(file.stat().st_size for file in sharded.iterdir())


def test_a_folder_has_one_digest_wherever_it_is(sharded: Path) -> None:
    """A copy under another name is the same checkpoint; a changed byte anywhere makes another."""
    copy = sharded.with_name("elsewhere")
    shutil.copytree(sharded, copy)
    assert examine(copy).digest == examine(sharded).digest
    without = frozenset({"merges.txt"})
    (copy / "merges.txt").write_text("a c\n")
    assert examine(copy).digest != examine(sharded).digest
    assert examine(copy, without).digest == examine(sharded, without).digest


DAMAGES: dict[str, Callable[[Path], object]] = {
    "is missing": lambda folder: (folder / "model-00002-of-00002.safetensors").unlink(),
    "lacks b": lambda folder: save_file({"c": torch.zeros(2)}, folder / "model-00002-of-00002.safetensors"),
    "optimizer.pt: it is cut short": lambda folder: os.truncate(folder / "optimizer.pt", 700),
    "optimizer.pt: it is empty": lambda folder: os.truncate(folder / "optimizer.pt", 0),
    "trainer_state.json: it is no JSON": lambda folder: (folder / "trainer_state.json").write_text('{"global_st'),
    "merges.txt: all its": lambda folder: (folder / "merges.txt").write_bytes(bytes(4)),
}


@pytest.mark.parametrize("reason", DAMAGES)
def test_one_damaged_or_missing_member_is_enough(reason: str, sharded: Path) -> None:
    """A folder is not whole when any known member is not, or an index names what is not there; the reason names it."""
    good = examine(sharded)
    DAMAGES[reason](sharded)
    found = examine(sharded)
    assert found.is_whole is False
    assert reason in found.reason
    assert found.digest not in {"", good.digest}


def test_an_empty_folder_is_not_whole_and_one_of_unknown_files_is_not_judged(tmp_path: Path) -> None:
    """Nothing in it: not whole, also with empty folders in it; only files of unknown formats: nobody can tell."""
    assert (examine(tmp_path).is_whole, examine(tmp_path).reason) == (False, "it is an empty folder")
    (tmp_path / "inner").mkdir()
    assert examine(tmp_path).is_whole is False
    (tmp_path / "inner" / "notes.txt").write_text("x")
    assert examine(tmp_path).is_whole is None


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    """A link counts by where it points to, so a loop of links ends."""
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "latest.json").symlink_to("a.json")
    found = examine(tmp_path)
    assert found.is_whole
    assert [leaf.name for leaf in found.leaves] == ["a.json/value", "latest.json", "loop"]
    (tmp_path / "latest.json").unlink()
    (tmp_path / "latest.json").symlink_to("b.json")
    assert examine(tmp_path).digest != found.digest


@pytest.fixture
def distributed(tmp_path: Path) -> Path:
    """Give a folder of torch.distributed.checkpoint, written by one process."""
    folder = tmp_path / "step-30"
    state = {"model": {"w": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}, "step": 30}
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    return folder


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch.distributed warns that no process group was made
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_distributed_checkpoint_is_read_through_its_metadata(distributed: Path, tmp_path: Path) -> None:
    """Tensors and values in the shards have the digests that they have in a plain torch file."""
    torch.save({"w": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}, tmp_path / "a.pt")
    plain = {leaf.name: leaf.digest for leaf in examine(tmp_path / "a.pt").leaves}
    found = examine(distributed)
    assert found.is_whole, found.reason
    leaves = {leaf.name: leaf for leaf in found.leaves}
    assert leaves["__0_0.distcp/model.w"].digest == plain["w"]
    assert leaves["__0_0.distcp/model.b"].digest == plain["b"]
    assert leaves["__0_0.distcp/step"].shown == "30"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / ".metadata").unlink(), "was not finished"),
        (lambda folder: (folder / ".metadata").write_bytes(b""), "empty"),
        (lambda folder: (folder / "__0_0.distcp").unlink(), "is missing"),
        (lambda folder: os.truncate(folder / "__0_0.distcp", 1500), "damaged"),
        (lambda folder: (folder / "__0_0.distcp").write_bytes(bytes(9000)), "damaged"),
    ],
)
def test_a_distributed_checkpoint_without_a_part_is_not_whole(
    damage: Callable[[Path], object], reason: str, distributed: Path
) -> None:
    """Metadata that is not there yet, shards that are missing, cut or zeros."""
    damage(distributed)
    found = examine(distributed)
    assert found.is_whole is False
    assert reason in found.reason

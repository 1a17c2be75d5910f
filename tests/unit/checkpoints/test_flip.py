"""A flipped bit: the file still looks whole, and its content is another by one unit in the last place."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from chaos.checkpoints.compare import compare
from chaos.checkpoints.examine import examine
from chaos.checkpoints.flip import flip_bit, rot_bit
from chaos.errors import UsageError

STATE = {"n": torch.arange(3), "w": torch.ones(4), "x": torch.ones(2)}


def _write(path: Path) -> None:
    """Write the state in the format that the path's name says."""
    if path.suffix == ".pt":
        torch.save(STATE, path)
    elif path.suffix == ".safetensors":
        save_file(STATE, path)
    elif path.suffix == ".npz":
        np.savez(path, **{name: tensor.numpy() for name, tensor in STATE.items()})
    else:
        path.mkdir()
        torch.save(STATE, path / "a.pt")


@pytest.mark.parametrize("name", ["a.pt", "a.safetensors", "a.npz", "folder"])
def test_one_bit_of_the_first_floating_tensor_is_flipped(name: str, tmp_path: Path) -> None:
    """Whole before and after, one element one ulp away, times kept; flipping again restores every byte."""
    path, good = tmp_path / name, tmp_path / f"good-{name}"
    for each in (path, good):
        _write(each)
    file = path / "a.pt" if path.is_dir() else path
    before, status = file.read_bytes(), file.stat()
    digest = examine(path).digest
    flipped = flip_bit(path)
    assert flipped == ("a.pt/w" if path.is_dir() else "w")
    found = examine(path)
    assert found.is_whole
    assert found.digest != digest
    difference = compare(good, path)
    assert (difference.elements_differing, difference.largest_ulp, difference.first_name) == (1, 1, flipped)
    assert file.stat().st_mtime_ns == status.st_mtime_ns
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            assert archive.testzip() is None
    flip_bit(path)
    assert file.read_bytes() == before


def test_torch_still_loads_the_file(tmp_path: Path) -> None:
    """What was flipped is loaded without complaint, with the other value: that is the danger."""
    torch.save(STATE, tmp_path / "a.pt")
    flip_bit(tmp_path / "a.pt")
    loaded = torch.load(tmp_path / "a.pt", weights_only=True)
    assert loaded["w"][0] == torch.nextafter(torch.tensor(1.0), torch.tensor(2.0))
    assert torch.equal(loaded["w"][1:], STATE["w"][1:])


def test_what_has_no_such_bit_is_refused(tmp_path: Path) -> None:
    """Whole numbers, texts, compressed arrays, damaged and missing files."""
    torch.save({"n": torch.arange(3), "e": torch.empty(0)}, tmp_path / "a.pt")
    (tmp_path / "b.json").write_text(json.dumps({"w": 1.5}))
    np.savez_compressed(tmp_path / "c.npz", w=np.ones(3))
    (tmp_path / "d.pt").write_bytes(b"PK")
    for name in ("a.pt", "b.json", "c.npz", "d.pt", "missing.pt"):
        with pytest.raises(UsageError, match="bit"):
            flip_bit(tmp_path / name)


@pytest.mark.parametrize("name", ["a.pt", "a.safetensors", "a.npz", "folder"])
def test_a_bit_that_rots_is_told_by_a_checksum_only(name: str, tmp_path: Path) -> None:
    """One byte of the file changes, none of its length or times; a zip's checksum tells, and nothing else would."""
    path = tmp_path / name
    _write(path)
    file = path / "a.pt" if path.is_dir() else path
    before, status = file.read_bytes(), file.stat()
    said = rot_bit(path, 1)
    after = file.read_bytes()
    [place] = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert (before[place] ^ after[place]).bit_count() == 1
    assert file.stat().st_mtime_ns == status.st_mtime_ns
    assert "element" in said
    assert examine(path).is_whole is (name == "a.safetensors")


def test_bits_that_rot_differ_and_matter(tmp_path: Path) -> None:
    """Forty variants strike at many places, all of them elements of floating tensors, which become other numbers."""
    state = {"w": torch.linspace(0.5, 2, 50), "z": torch.zeros(30), "n": torch.arange(40)}
    said = set()
    for variant in range(40):
        path = tmp_path / f"{variant}.safetensors"
        save_file(state, path)
        said.add(rot_bit(path, variant))
        rotten = load_file(path)
        assert torch.equal(rotten["n"], state["n"])
        changed = torch.cat([rotten["w"] - state["w"], rotten["z"] - state["z"]])
        [place] = torch.nonzero(changed).flatten().tolist()
        old = torch.cat([state["w"], state["z"]])[place].item()
        assert not abs(changed[place].item()) < 0.2 * abs(old)
    assert len(said) > 35


def test_elements_of_a_strided_tensor_are_found(tmp_path: Path) -> None:
    """Of a transposed view that torch saves as it lies, the element that is told is the one that changes."""
    state = {"w": torch.arange(1.0, 13.0).reshape(3, 4).t()}
    for variant in range(6):
        path = tmp_path / f"{variant}.pt"
        torch.save(state, path)
        element = int(rot_bit(path, variant).split("element ")[1].split(" ")[0])
        loaded = torch.load(path, weights_only=True)["w"]
        [place] = torch.nonzero((loaded != state["w"]).flatten()).flatten().tolist()
        assert place == element

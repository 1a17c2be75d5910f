"""A flipped bit: the file still looks whole, and its content is another by one unit in the last place."""

from __future__ import annotations

import io
import json
import pickle
import pickletools
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


def _changed(before: bytes, path: Path) -> int:
    """Return the one place in which a file differs from what it was; its length must be the same."""
    [place] = [at for at, (old, new) in enumerate(zip(before, path.read_bytes(), strict=True)) if old != new]
    return place


JSON = {"step": 100, "name": "run 7", "loss": 0.25, "w": [k / 7 for k in range(20)], "e": 1.5e300, "zero": 0, "-": -30}


@pytest.mark.parametrize("num_lines", [1, 2])
def test_a_digit_in_json_becomes_another(num_lines: int, tmp_path: Path) -> None:
    """One number is another and everything else as it was, for each of many variants; the file always parses."""
    path = tmp_path / "a.json"
    text = "\n".join([json.dumps(JSON)] * num_lines)
    said = set()
    for variant in range(200):
        path.write_text(text)
        status = path.stat()
        words = rot_bit(path, variant)
        place = _changed(text.encode(), path)
        assert f"byte {place:,} (now {path.read_bytes()[place : place + 1].decode()})" in words
        assert path.stat().st_mtime_ns == status.st_mtime_ns
        lines = path.read_text().splitlines()
        values = [json.loads(line) for line in lines]
        assert sum(value != JSON for value in values) == 1
        assert all(value["name"] == "run 7" and value.keys() == JSON.keys() for value in values)
        said.add(words)
    assert len(said) > 100


NUMBERS = {
    "step": 300,
    "small": 7,
    "wide": 1 << 20,
    "long": 1 << 70,
    "minus": -5,
    "loss": 0.25,
    "none": 0.0,
    "on": True,
}


@pytest.mark.parametrize("protocol", range(6))
def test_a_number_in_a_pickle_becomes_another(protocol: int, tmp_path: Path) -> None:
    """Whatever the protocol, the pickle loads and one number in it is another; each number's turn comes."""
    path = tmp_path / "a.pkl"
    data = pickle.dumps(NUMBERS, protocol)
    differing = set()
    for variant in range(60):
        path.write_bytes(data)
        words = rot_bit(path, variant)
        assert f"byte {_changed(data, path):,}" in words
        loaded = pickle.loads(path.read_bytes())  # noqa: S301 - written right here
        assert loaded.keys() == NUMBERS.keys()
        [key] = [key for key, value in NUMBERS.items() if loaded[key] != value]
        differing.add(key)
    assert differing == NUMBERS.keys() - {"on"}


def test_numbers_of_several_pickles_are_found(tmp_path: Path) -> None:
    """Pickles behind each other are all looked through."""
    path = tmp_path / "a.pkl"
    data = pickle.dumps({"a": 1.5}) + pickle.dumps({"b": 2.5})
    places = set()
    for variant in range(4):
        path.write_bytes(data)
        rot_bit(path, variant)
        places.add(_changed(data, path) < len(data) // 2)
    assert places == {True, False}


def test_an_array_in_a_pickle_is_flipped_where_it_lies(tmp_path: Path) -> None:
    """The elements of an array are changed before any number of the structure around it."""
    array = np.linspace(1.0, 2.0, 50)
    path = tmp_path / "a.pkl"
    for variant in range(10):
        path.write_bytes(pickle.dumps({"step": 5, "w": array}))
        assert "of w" in rot_bit(path, variant)
        loaded = pickle.loads(path.read_bytes())  # noqa: S301 - written right here
        assert loaded["step"] == 5
        assert (loaded["w"] != array).sum() == 1


def test_shapes_in_a_pickle_are_left_alone(tmp_path: Path) -> None:
    """Of an array whose bytes do not lie open, only numbers are changed with which the file still loads."""
    data = pickle.dumps({"w": np.ones(3), "steps": [1000, 2000]}, protocol=2)
    path = tmp_path / "a.pkl"
    assert any(code.name == "REDUCE" for code, _, _ in pickletools.genops(data))
    for variant in range(20):
        path.write_bytes(data)
        rot_bit(path, variant)
        assert examine(path).is_whole


@pytest.mark.parametrize("dtype", ["uint8", "int64", ">i4", "bool", ">f8", "<f4", "complex64", ">c16", "<U3"])
def test_arrays_of_any_kind_are_flipped(dtype: str, tmp_path: Path) -> None:
    """Whole numbers, bools, complex and big-endian numbers, texts: one element is another; bools stay bools."""
    array = (np.arange(40) % 2).astype(dtype)
    path = tmp_path / "a.npy"
    for variant in range(12):
        np.save(path, array)
        before = path.read_bytes()
        rot_bit(path, variant)
        _changed(before, path)
        loaded = np.load(path)
        assert (loaded != array).sum() == 1
        if array.dtype.kind in "fc":
            assert not abs(loaded - array).max() < 0.2
        assert loaded.dtype.kind != "b" or set(loaded.view(np.uint8)) <= {0, 1}


@pytest.mark.parametrize("name", ["a.pt", "a.safetensors", "a.npz"])
def test_whole_numbers_are_flipped_where_nothing_floats(name: str, tmp_path: Path) -> None:
    """Tensors of whole numbers are the next best; a bit of the value changes, not of the header."""
    path = tmp_path / name
    tensor = torch.arange(30)
    if name == "a.pt":
        torch.save({"n": tensor}, path)
    elif name == "a.npz":
        np.savez(path, n=tensor.numpy())
    else:
        save_file({"n": tensor}, path)
    assert " of n" in rot_bit(path, 5)
    if name == "a.safetensors":
        assert (load_file(path)["n"] != tensor).sum() == 1
    else:
        assert examine(path).is_whole is False  # its checksum tells


def test_a_torch_file_without_tensors_is_changed_in_its_pickle(tmp_path: Path) -> None:
    """A number of its structure becomes another; the archive's checksum tells."""
    path = tmp_path / "a.pt"
    torch.save({"step": 1000, "lr": 0.5}, path)
    before = path.read_bytes()
    rot_bit(path, 1)
    with zipfile.ZipFile(io.BytesIO(before)) as archive:
        [info] = [info for info in archive.infolist() if info.filename.endswith("data.pkl")]
    assert info.header_offset < _changed(before, path) < info.header_offset + 200 + info.file_size
    assert examine(path).is_whole is False


def test_compressed_arrays_are_flipped_as_they_lie(tmp_path: Path) -> None:
    """A bit of the compressed bytes is flipped, and the words say so."""
    path = tmp_path / "a.npz"
    np.savez_compressed(path, w=np.ones(300))
    assert "compressed record w.npy" in rot_bit(path, 3)
    assert examine(path).is_whole is False


def test_of_an_unknown_format_the_middle_is_flipped(tmp_path: Path) -> None:
    """A bit of the middle third, with the warning that it may be padding."""
    path = tmp_path / "a.state"
    data = bytes(range(1, 251)) * 3
    for variant in range(30):
        path.write_bytes(data)
        assert "may be padding" in rot_bit(path, variant)
        assert len(data) // 3 <= _changed(data, path) < 2 * len(data) // 3 + 1


def test_what_holds_no_number_cannot_rot(tmp_path: Path) -> None:
    """Texts, and files that are damaged or not there."""
    (tmp_path / "a.json").write_text(json.dumps({"name": "run 7"}))
    (tmp_path / "b.pkl").write_bytes(pickle.dumps(["text", True, None]))
    (tmp_path / "c.json").write_text("{")
    for name in ("a.json", "b.pkl", "c.json", "missing.json"):
        with pytest.raises(UsageError, match="no bit"):
            rot_bit(tmp_path / name, 1)

"""npy, npz, plain pickles and JSON."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaos.checkpoints.compare import compare
from chaos.checkpoints.examine import examine

ARRAYS = {
    "float": np.arange(6.0).reshape(2, 3),
    "half": np.arange(6, dtype=np.float16),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "zero": np.array(3),
    "empty": np.empty((0, 2)),
    "text": np.array(["ab", "c"]),
    "big": np.arange(3, dtype=">i4"),
    "bool": np.array([True, False]),
    "complex": np.arange(2) * 1j,
    "record": np.zeros(2, dtype=[("a", "<i4"), ("b", "<f8")]),
    "time": np.array(["2020-01-01"], dtype="M8[s]"),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_holds_its_arrays(save: Any, tmp_path: Path) -> None:
    """Each array is a leaf with its shape, stored or compressed alike."""
    save(tmp_path / "a.npz", **ARRAYS)
    found = examine(tmp_path / "a.npz")
    assert (found.is_whole, found.format) == (True, "npz")
    assert {leaf.name: leaf.shape for leaf in found.leaves} == {name: array.shape for name, array in ARRAYS.items()}
    digests = {leaf.name: leaf.digest for leaf in found.leaves}
    assert digests["fortran"] == digests["float"]
    np.savez(tmp_path / "b.npz", **ARRAYS)
    assert examine(tmp_path / "b.npz").digest == found.digest


@pytest.mark.parametrize("name", ARRAYS)
def test_npy_holds_its_array(name: str, tmp_path: Path) -> None:
    """A single array is the leaf `value`, with the digest that it has in an npz and in a pickle."""
    array = ARRAYS[name]
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", value=array)
    found = examine(tmp_path / "a.npy")
    assert (found.is_whole, found.format) == (True, "npy")
    assert found.leaves == examine(tmp_path / "a.npz").leaves
    if name not in {"record", "time", "text"}:
        (tmp_path / "a.pkl").write_bytes(pickle.dumps(array))
        assert examine(tmp_path / "a.pkl").leaves == found.leaves


def test_arrays_of_objects_are_read_without_running_them(tmp_path: Path) -> None:
    """An npz with pickled objects gives their leaves."""
    np.savez(tmp_path / "a.npz", o=np.array([1, {"k": "v"}], dtype=object), w=np.ones(2))
    assert [leaf.name for leaf in examine(tmp_path / "a.npz").leaves] == ["o.0", "o.1.k", "w"]


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_all_protocols_have_one_content(protocol: int, tmp_path: Path) -> None:
    """Numbers, texts, bytes, sets and arrays are the same whatever protocol wrote them."""
    value = {
        "w": np.arange(6.0).reshape(2, 3).T,
        "b": b"\x00\xff",
        "s": {3, 1, 2},
        "c": 1 + 2j,
        "n": 10**300,
        "t": ("a",),
    }
    for name, number in (("a.pkl", protocol), ("b.pkl", 4)):
        (tmp_path / name).write_bytes(pickle.dumps(value, number))
    one, two = examine(tmp_path / "a.pkl"), examine(tmp_path / "b.pkl")
    assert one.is_whole, one.reason
    assert one.leaves == two.leaves


OBJECTS = """
import collections, datetime, enum, fractions, functools, pathlib, pickle, random, sys
class Mode(enum.Enum):
    FAST = "fast"
value = {
    "set": {"a", "b", "c", ("d", 1), None, 2.5}, "frozen": frozenset("xyz"), "path": pathlib.Path("a/b"),
    "when": datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc), "partial": functools.partial(int, base=2),
    "deque": collections.deque([1, 2], maxlen=3), "default": collections.defaultdict(list, a=[1]),
    "counter": collections.Counter("aab"), "ordered": collections.OrderedDict(b=1), "mode": Mode.FAST,
    "fraction": fractions.Fraction(1, 3), "range": range(3), "slice": slice(1, 2),
    "generator": random.Random(3).getstate(),
    "class": int, "function": len,
    "error": ValueError("no"), "bytearray": bytearray(b"abc"),
}
sys.stdout.buffer.write(pickle.dumps(value, int(sys.argv[1])))
"""


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_objects_of_all_kinds_have_a_digest_that_does_not_depend_on_the_process(protocol: int, tmp_path: Path) -> None:
    """Sets, enumerations, dates, paths, deques, partials and classes are whole, and equal under two hash seeds."""
    for seed in ("1", "2"):
        command = [sys.executable, "-c", OBJECTS, str(protocol)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=environment, capture_output=True, timeout=30, check=True)
        (tmp_path / f"{seed}.pkl").write_bytes(done.stdout)
    one, two = examine(tmp_path / "1.pkl"), examine(tmp_path / "2.pkl")
    assert one.is_whole, one.reason
    assert one.leaves == two.leaves
    shown = {leaf.name: leaf.shown for leaf in one.leaves}
    assert shown["counter.a"] == "2"
    assert shown["default.a.0"] == "1"
    assert shown["ordered.b"] == "1"
    assert shown["bytearray"] == "b'abc'"
    assert "'fast'" in shown.values()


def test_several_pickles_in_one_file_are_a_sequence(tmp_path: Path) -> None:
    """Objects dumped one behind the other are all read; a torn last one may be cut off by its reader, so who knows."""
    data = pickle.dumps({"a": 1}) + pickle.dumps([2])
    (tmp_path / "a.pkl").write_bytes(data)
    assert [leaf.name for leaf in examine(tmp_path / "a.pkl").leaves] == ["0.a", "1.0"]
    (tmp_path / "a.pkl").write_bytes(data[:-1])
    found = examine(tmp_path / "a.pkl")
    assert (found.is_whole, found.reason) == (None, "it ends in a torn record")
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"a": 1})[:-1])
    assert examine(tmp_path / "a.pkl").is_whole is False


def test_json_lines_are_a_sequence(tmp_path: Path) -> None:
    """Records on lines of their own are all read; a torn last one is nobody's to judge, one in the middle is damage."""
    path = tmp_path / "a.json"
    path.write_text('{"step": 1}\n{"step": 2}\n')
    assert [leaf.name for leaf in examine(path).leaves] == ["0.step", "1.step"]
    path.write_text('{"step": 1}\n{"st')
    assert (examine(path).is_whole, examine(path).reason) == (None, "it ends in a torn record")
    for damaged in ('{"step": 1}\n{"st\n{"step": 3}\n', '{\n "step": 1,\n "x"'):
        path.write_text(damaged)
        assert examine(path).is_whole is False, damaged


def test_names_that_are_no_unicode_are_written_out(tmp_path: Path) -> None:
    """A lone surrogate in a key or a value gives a name that any encoder takes."""
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"\ud800": "\udfff"}))
    (leaf,) = examine(tmp_path / "a.pkl").leaves
    assert leaf.name.encode() == b"\\ud800"
    assert leaf.shown.encode()


def test_long_and_odd_names_can_be_compared(tmp_path: Path) -> None:
    """A tensor is found again under its cleaned name."""
    for name, number in (("a.pkl", 1.0), ("b.pkl", 2.0)):
        value = {
            "\ud800": np.array([number]),
            "x" * 5000: np.array([number]),
            "a.b": np.ones(1),
            "a": {"b": np.ones(1)},
        }
        (tmp_path / name).write_bytes(pickle.dumps(value))
    assert compare(tmp_path / "a.pkl", tmp_path / "b.pkl").elements_differing == 2
    assert max(len(leaf.name) for leaf in examine(tmp_path / "a.pkl").leaves) < 500


def test_json_is_read_by_path(tmp_path: Path) -> None:
    """Objects and lists become paths; numbers keep their type."""
    (tmp_path / "a.json").write_text(json.dumps({"log": [{"step": 1, "loss": 1.0}], "best": None}))
    assert {leaf.name: leaf.dtype for leaf in examine(tmp_path / "a.json").leaves} == {
        "log.0.step": "int",
        "log.0.loss": "float",
        "best": "NoneType",
    }


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (2**70,)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1" + b"0" * 30 + b",)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        b"{'descr': '<f8', 'fortran_order': False}",
        b"{'descr': [('a',)], 'fortran_order': False, 'shape': (1,)}",
        b"{'descr': '<f', 'fortran_order': False, 'shape': (1,)}",
        b"__import__('os').abort()",
        b"(" * 5000,
    ],
)
def test_an_npy_header_that_lies_is_damage(header: bytes, tmp_path: Path) -> None:
    """Shapes that are not there, missing entries and code in a header are refused."""
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8))
    assert examine(tmp_path / "a.npy").is_whole is False

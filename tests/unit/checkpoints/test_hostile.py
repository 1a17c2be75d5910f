"""Hostile files: nothing in them is run, and no claim of theirs takes memory or time without limit."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
import zipfile
from collections import deque
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.examine import examine
from chaos.checkpoints.flatten import MAX_LEAVES, Flattened, flatten
from chaos.checkpoints.inert import Rebuilder, SealedType, Stub
from chaos.checkpoints.pickles import InertUnpickler, load_pickle
from chaos.checkpoints.process import Examiner


class Calls:
    """Pickles as a call of `function` with `arguments`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        """Keep what is to be called."""
        self.function = function
        self.arguments = arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Ask the reader of the pickle to make the call."""
        return self.function, self.arguments


def _attacks(mark: Path) -> list[object]:
    """Return objects whose true unpickling makes the file `mark`."""
    return [
        Calls(os.system, f"touch {mark}"),
        Calls(eval, f"__import__('os').mkdir({str(mark)!r})"),
        Calls(exec, f"__import__('os').mkdir({str(mark)!r})"),
        Calls(os.mkdir, str(mark)),
        Calls(Path.touch, mark),
    ]


@pytest.mark.parametrize("which", range(5))
def test_a_call_in_a_pickle_is_recorded_and_not_made(which: int, tmp_path: Path) -> None:
    """`os.system`, `eval` and `exec` are names in the result; the file that they would make is not there."""
    mark = tmp_path / "mark"
    attack = _attacks(mark)[which]
    torch.save({"x": torch.ones(2), "bad": attack}, tmp_path / "a.pt")
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"bad": attack}))
    for name in ("a.pt", "a.pkl"):
        found = examine(tmp_path / name)
        assert found.is_whole
        shown = {leaf.name: leaf.shown for leaf in found.leaves}
        assert any(word in shown["bad"] for word in ("system", "eval", "exec", "mkdir", "getattr", "touch"))
    assert not mark.exists()
    # The attack is a true one: Python's own unpickler falls for it.
    pickle.loads((tmp_path / "a.pkl").read_bytes())  # noqa: S301 - harmless, and made by this test
    assert mark.exists()


@pytest.mark.parametrize(
    "name", ["os system", "builtins eval", "builtins getattr", "torch._utils _rebuild_tensor_v2", "numpy dtype", "a b"]
)
def test_no_global_is_what_it_says(name: str) -> None:
    """Whatever global is asked for, what comes is a stub or an inert rebuilder, never an object of Python's."""
    module, attribute = name.split()
    thing = InertUnpickler(io.BytesIO()).find_class(module, attribute)
    assert isinstance(thing, Rebuilder | SealedType)


def _assembled(*parts: bytes) -> bytes:
    """Return a pickle of protocol 2 from opcodes."""
    return b"\x80\x02" + b"".join(parts) + b"."


STATE = b"}X\x05\x00\x00\x00shapeK\x01s"


@pytest.mark.parametrize(
    "name", [b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch\nFloatStorage\n", b"cos\nsystem\n", b"cnumpy\ndtype\n"]
)
@pytest.mark.parametrize("state", [STATE, b"N" + STATE + b"\x86"])
def test_state_cannot_be_set_on_what_a_global_gives(name: bytes, state: bytes) -> None:
    """BUILD on a function, a dtype or a class is refused in both of its forms, and leaves no trace."""
    before = dict(vars(Stub))
    with pytest.raises(DamagedError):
        load_pickle(_assembled(name, state, b"b"))
    assert dict(vars(Stub)) == before
    assert "shape" not in vars(Rebuilder)


def test_a_class_can_be_instantiated_in_every_way_a_pickle_knows() -> None:
    """NEWOBJ, NEWOBJ_EX, REDUCE, BUILD, APPENDS, SETITEMS and ADDITEMS on unknown classes are kept as data."""
    name = b"cmod\nThing\n"
    built = flatten(load_pickle(_assembled(name, b")\x81", STATE, b"b")))
    assert [(leaf.name, leaf.shown) for leaf in built.leaves] == [("value", "'mod.Thing'"), ("state.shape", "1")]
    called = flatten(load_pickle(_assembled(name, b"K\x07\x85R")))
    assert [leaf.name for leaf in called.leaves] == ["value", "args.0"]
    filled = flatten(load_pickle(_assembled(name, b")\x81", b"(K\x01K\x02e")))
    assert [leaf.shown for leaf in filled.leaves] == ["'mod.Thing'", "1", "2"]
    mapped = flatten(load_pickle(_assembled(name, b")\x81", b"(K\x01K\x02u")))
    assert [leaf.shown for leaf in mapped.leaves] == ["'mod.Thing'", "1", "2"]
    named = flatten(load_pickle(b"\x80\x04" + name + b")" + STATE + b"\x92."))
    assert [leaf.name for leaf in named.leaves] == ["value", "args.0.shape"]
    twice = flatten(load_pickle(_assembled(name, b")R", b"K\x01\x85R")))
    assert [leaf.shown for leaf in twice.leaves] == ["'mod.Thing()'", "1"]


def test_a_number_cannot_become_memory() -> None:
    """`bytearray(10**15)` allocates nothing."""
    found = flatten(load_pickle(pickle.dumps(Calls(bytearray, 10**15), 4)))
    assert [leaf.shown for leaf in found.leaves] == ["'builtins.bytearray'", "1000000000000000"]


def test_a_structure_within_itself_ends() -> None:
    """A list that contains itself has one leaf that says so."""
    loop: list[object] = [1]
    loop.append(loop)
    assert [leaf.dtype for leaf in flatten(load_pickle(pickle.dumps(loop))).leaves] == ["int", "cycle"]


def test_deep_nesting_and_a_great_number_of_values_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A structure too deep or too large (doubled again and again) is not judged, in a short time."""
    with pytest.raises(UnjudgeableError):
        flatten(load_pickle(_assembled(b"]" * 100_000, b"a" * 99_999)))
    doubled: list[object] = [0]
    for _ in range(60):
        doubled = [doubled, doubled]
    monkeypatch.setattr("chaos.checkpoints.flatten.MAX_LEAVES", 1000)
    with pytest.raises(UnjudgeableError):
        flatten(load_pickle(pickle.dumps(doubled)))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_structure_or_damage(data: bytes) -> None:
    """Whatever the opcodes are, the only ways out are a value and the two answers."""
    try:
        flatten(load_pickle(b"\x80\x02" + data))
    except (DamagedError, UnjudgeableError):
        return
    assert b"." in data


def test_a_pickle_that_asks_for_too_much_memory_cannot_be_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flipped bit in a length or a place makes the unpickler ask for gigabytes."""

    def give_up(_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(InertUnpickler, "load", give_up)
    with pytest.raises(UnjudgeableError, match="memory"):
        load_pickle(b"\x80\x02N.")


@given(st.data())
def test_a_damaged_pickle_harms_nobody(data: st.DataObject) -> None:
    """A real pickle with bytes replaced ends in a value or one of the two answers."""
    good = bytearray(pickle.dumps({"a": [1, 2.5, "x", b"y"], "s": {1, 2}, "o": Calls(dict, [("k", 1)])}, 4))
    for _ in range(data.draw(st.integers(1, 4))):
        # An index of the memo may ask for 32 GB, which only the child's limit on memory refuses.
        byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != pickle.LONG_BINPUT[0]))
        good[data.draw(st.integers(2, len(good) - 1))] = byte
    try:
        found = flatten(load_pickle(bytes(good)))
    except (DamagedError, UnjudgeableError):
        return
    assert found.leaves or found.tensors


def _with_pickle(path: Path, opcodes: bytes, records: dict[str, bytes]) -> None:
    """Write a torch file with a pickle of one's own."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", opcodes)
        for name, data in records.items():
            archive.writestr(f"a/data/{name}", data)


def _tensor_opcodes(count: int, offset: int, shape: list[int], strides: list[int]) -> bytes:
    """Return the pickle of one float32 tensor with the given view of storage 0."""

    def number(value: int) -> bytes:
        """Return the opcode for a whole number."""
        return b"\x8a\x09" + struct.pack("<q", value) + b"\x00" if value >= 0 else b"J" + struct.pack("<i", value)

    def row(values: list[int]) -> bytes:
        """Return the opcodes for a tuple of numbers."""
        return b"(" + b"".join(map(number, values)) + b"t"

    storage = (
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number(count) + b"tQ"
    )
    return _assembled(
        b"ctorch._utils\n_rebuild_tensor_v2\n(", storage, number(offset), row(shape), row(strides), b"\x89NtR"
    )


def test_the_made_pickle_is_a_true_one(tmp_path: Path) -> None:
    """The file that the next tests bend is whole when nothing is bent, so they test what they say."""
    opcodes = _tensor_opcodes(4, 1, [3], [1])
    pickletools.dis(opcodes, out=io.StringIO())
    _with_pickle(tmp_path / "a.pt", opcodes, {"0": bytes(range(16))})
    (leaf,) = examine(tmp_path / "a.pt").leaves
    assert (leaf.shape, leaf.dtype) == ((3,), "float32")


@pytest.mark.parametrize(
    "view",
    [
        (4, 2, [3], [1]),
        (4, 0, [5], [1]),
        (4, -1, [2], [1]),
        (4, 0, [2], [-1]),
        (4, 0, [-2], [1]),
        (5, 0, [2], [1]),
        (4, 0, [2, 2], [1]),
        (4, 0, [2**40], [1]),
        (4, 0, [2], [2**60]),
    ],
)
def test_a_view_outside_of_its_storage_is_damage(view: tuple[int, int, list[int], list[int]], tmp_path: Path) -> None:
    """Offsets, shapes and strides that reach beyond the data are refused before anything is read."""
    _with_pickle(tmp_path / "a.pt", _tensor_opcodes(*view), {"0": bytes(range(16))})
    assert examine(tmp_path / "a.pt").is_whole is False


def test_a_missing_storage_is_damage(tmp_path: Path) -> None:
    """A pickle that refers to a record which is not there makes the file not whole."""
    _with_pickle(tmp_path / "a.pt", _tensor_opcodes(4, 0, [4], [1]), {"1": bytes(16)})
    assert "data/0 is missing" in examine(tmp_path / "a.pt").reason


def test_an_intact_file_of_an_unknown_kind_is_not_called_damaged(tmp_path: Path) -> None:
    """With right checksums a pickle that cannot be read proves no damage; with a wrong one elsewhere it is damaged."""
    _with_pickle(tmp_path / "a.pt", b"\x80\x02\xff.", {"0": b"abcdefgh" * 2})
    assert examine(tmp_path / "a.pt").is_whole is None
    data = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "a.pt").write_bytes(data.replace(b"abcdefgh", b"abcdefgi", 1))
    assert examine(tmp_path / "a.pt").is_whole is False


def test_a_file_that_takes_all_memory_or_time_is_not_judged_and_the_next_one_is(tmp_path: Path) -> None:
    """A huge memo, a tensor of petabytes made of one number: the limit or the deadline, then as before."""
    torch.save(torch.ones(2), tmp_path / "good.pt")
    # A tensor of 2**50 elements that all are the same one: legal, and more than anybody can hash.
    _with_pickle(tmp_path / "view.pt", _tensor_opcodes(4, 0, [2**50], [0]), {"0": bytes(range(16))})
    # The memo is told to grow to 2**31 entries; a tuple doubled 40 times is a key, so it has to be hashed.
    (tmp_path / "memo.pkl").write_bytes(b"\x80\x02]r" + struct.pack("<I", 2**31) + b".")
    (tmp_path / "hash.pkl").write_bytes(b"\x80\x02}K\x01" + b"\x85q\x000h\x00h\x00\x86" * 40 + b"Ns.")
    with Examiner(memory_bytes=1 << 30, deadline_s=1.5) as examiner:
        for name, reason in (("view.pt", "repeats 4 bytes"), ("memo.pkl", "memory"), ("hash.pkl", "longer than")):
            found = examiner.examine(tmp_path / name)
            assert found.is_whole is None, (name, found)
            assert reason in found.reason, name
            assert examiner.examine(tmp_path / "good.pt").is_whole is True


def test_a_small_pickle_of_doubled_lists_is_given_up_early() -> None:
    """Lists that hold the one before twice are given up by how often they are met again, long before the leaves are."""
    doubled: list[object] = [0, 1, 2]
    for _ in range(60):
        doubled = [doubled, doubled]
    found = Flattened()
    with pytest.raises(UnjudgeableError, match="the same objects"):
        found.add("", load_pickle(pickle.dumps(doubled)))
    assert len(found.leaves) < MAX_LEAVES / 2


def test_what_is_met_again_in_a_checkpoint_does_not_count_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown objects with parts, empty tuples and values are no repeats: only what the pickle names twice is."""
    monkeypatch.setattr("chaos.checkpoints.flatten.MAX_REPEATS", 0)
    state = {"queues": [deque([number]) for number in range(50)], "none": [() for _ in range(50)]}
    assert len(flatten(load_pickle(pickle.dumps(state))).leaves) >= 100

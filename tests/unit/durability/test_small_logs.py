"""Small logs with one rule each, at every point, against the simulator."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from chaos.model import FileSystem

from .brute_force import State, Step, survivors
from .conftest import after_loss, played
from .small_logs import LOGS, TWO_PAGES, allocate, cut, folder, make, punch, rename, sync, write


@pytest.mark.parametrize("name", LOGS)
def test_a_small_log(tmp_path: Path, name: str) -> None:
    """At every point there are the states that the simulator finds, and no others."""
    log = LOGS[name]
    with played(tmp_path / "recording", log.steps, len(log.before)) as recording:
        for file_system, index in itertools.product(FileSystem, range(len(log.after) + 1)):
            expected = survivors(log.steps, len(log.before), index, file_system.value)
            assert set(after_loss(recording, index, file_system)) == expected


def only(path: str, *contents: bytes) -> set[State]:
    """Return the states in which there is nothing but one file, with one of some contents."""
    return {frozenset({(path, content)}) for content in contents}


P = 4096
A, B, Z = b"A" * P, b"B" * P, bytes(P)


@pytest.mark.parametrize(
    ("before", "after", "file_system", "expected"),
    [
        ([make("a")], [write("a", "B", 0, 100)], "ext4", only("a", b"", b"B" * 100, bytes(100))),
        (
            [make("a")],
            [write("a", "B", 0, P + 1)],
            "ext4",
            only("a", b"", B, Z, Z + b"\0", Z + b"B", B + b"\0", B + b"B"),
        ),
        (TWO_PAGES, [cut("a", 0)], "ext4", only("a", A + A, b"")),
        (TWO_PAGES, [cut("a", 0)], "posix", only("a", A + A, b"")),
        (TWO_PAGES, [cut("a", 0), sync("a")], "posix", only("a", b"")),
        # Measured: cut kept, bytes not yet written.
        (
            [make("a")],
            [write("a", "B", 0, 30), cut("a", 15), make("b"), sync("b")],
            "ext4",
            {frozenset({("a", data), ("b", b"")}) for data in (b"B" * 15, bytes(15))},
        ),
        # Measured: cut lost, what was written later in place is there.
        (TWO_PAGES, [cut("a", P), write("a", "B", 0, P)], "xfs", only("a", A + A, B + A, A, B)),
        # Measured: a hole at the front makes no length durable.
        (
            [make("a"), write("a", "A", 0, P)],
            [write("a", "B", P, 2 * P), punch("a", 0, P)],
            "ext4",
            only("a", A, A + Z, A + B, Z, Z + Z, Z + B),
        ),
        # Measured: the end of a hole as the length.
        (
            [make("a")],
            [write("a", "B", 0, 20), punch("a", 5, 5)],
            "ext4",
            only(
                "a",
                b"",
                *(d for n in (10, 20) for d in (bytes(n), (b"B" * 20)[:n], (b"BBBBB" + bytes(5) + b"B" * 10)[:n])),
            ),
        ),
        ([make("a")], [allocate("a", 0, 5)], "ext4", only("a", b"", bytes(5))),
        ([folder("a")], [rename("a", "b")], "posix", {frozenset({("a", None)}), frozenset({("b", None)}), frozenset()}),
        (
            [make("a")],
            [rename("a", "b")],
            "posix",
            {frozenset(), frozenset({("a", b"")}), frozenset({("b", b"")}), frozenset({("a", b""), ("b", b"")})},
        ),
        ([make("a")], [rename("a", "b")], "btrfs", {frozenset({("a", b"")}), frozenset({("b", b"")})}),
    ],
)
def test_by_hand(tmp_path: Path, before: list[Step], after: list[Step], file_system: str, expected: set[State]) -> None:
    """The states of the smallest logs, written out: the model says so, and so does the simulator."""
    steps = [*before, *after]
    assert survivors(steps, len(before), len(after), file_system) == expected
    with played(tmp_path / "recording", steps, len(before)) as recording:
        assert set(after_loss(recording, len(after), FileSystem(file_system))) == expected

"""Which real folders are admitted: those that a loss of power may leave, and no others."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from chaos.errors import InconclusiveError
from chaos.model import FileSystem
from chaos.states.durability import admits, admitting

from .brute_force import PAGE, State, survivors
from .conftest import played
from .small_logs import LOGS, TWO_PAGES, Small, folder, make, rename, sync, write


def laid_out(out: Path, state: State) -> Path:
    """Make a real folder of a state."""
    out.mkdir()
    for path, value in sorted(state, key=lambda item: item[0]):
        match value:
            case None:
                (out / path).mkdir()
            case str():
                (out / path).symlink_to(value)
            case _:
                (out / path).write_bytes(value)
    return out


@pytest.mark.parametrize("name", LOGS)
def test_what_may_be_left_of_a_small_log(tmp_path: Path, name: str) -> None:
    """Of all states that the log can leave at any point on any file system, those of this point and this one."""
    log = LOGS[name]
    points = list(itertools.product(FileSystem, range(len(log.after) + 1)))
    sets = {(fs, index): survivors(log.steps, len(log.before), index, fs.value) for fs, index in points}
    states = sorted(set().union(*sets.values()), key=lambda state: sorted(state, key=str).__repr__())
    with played(tmp_path / "recording", log.steps, len(log.before)) as recording:
        for number, state in enumerate(states[:: max(len(states) // 40, 1)]):
            out = laid_out(tmp_path / str(number), state)
            answers = {point: admits(recording, point[1], point[0], out) == "" for point in points}
            assert answers == {point: state in sets[point] for point in points}, state


SAVED = Small(TWO_PAGES, (make("b"), write("b", "B", 0, 5000), sync("b"), rename("b", "a")))


@pytest.mark.parametrize(
    ("real", "reason"),
    [
        ({"a": b"B" * 5000}, ""),
        ({"a": b"A" * 8192, "b": b"B" * 5000}, ""),
        ({"b": b"B" * 5000}, "a is missing"),
        ({"a": b"B" * 5000, "b": b""}, "b is there"),
        ({"a": b"A" * 8192}, "b is missing"),
        ({"a": b"A" * 8192, "b": b"B" * 4999}, "b holds 4,999 bytes that it cannot hold"),
        ({"a": b"B" * 4999 + b"C"}, "a holds 5,000 bytes that it cannot hold"),
        ({"a": b"B" * 5000, "z": b""}, "z is there"),
        ({"a": None}, "a is no file"),
        ({"a": "b"}, "a is no file"),
    ],
)
def test_the_reason_is_told(tmp_path: Path, real: dict[str, bytes | str | None], reason: str) -> None:
    """What cannot be is named, with its path."""
    out = laid_out(tmp_path / "out", frozenset(real.items()))
    with played(tmp_path / "recording", SAVED.steps, len(SAVED.before)) as recording:
        answer = admits(recording, len(SAVED.after), FileSystem.EXT4, out)
    assert (answer == "") == (reason == "")
    assert reason in answer


@pytest.mark.parametrize("file_system", FileSystem)
def test_two_names_of_one_file_hold_the_same(tmp_path: Path, file_system: FileSystem) -> None:
    """Each may be empty or full, but not one of them empty and the other one full."""
    log = LOGS["two names hold the same bytes"]
    full = b"B" * PAGE
    contents = [(full, full), (b"", b""), (full, b""), (b"", full)]
    with played(tmp_path / "recording", log.steps, len(log.before)) as recording:
        for number, (a, b) in enumerate(contents):
            out = laid_out(tmp_path / str(number), frozenset({("a", a), ("b", b)}))
            assert (admits(recording, len(log.after), file_system, out) == "") == (a == b)


def test_it_gives_up_where_there_is_too_much_to_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where names are free, and can be read in more ways than there is time for, it says so."""
    monkeypatch.setattr(admitting, "_MOST_WAYS", 3)
    steps = [*(make(name) for name in "abcdef"), folder("x"), rename("x", "y"), rename("y", "z"), rename("z", "x")]
    steps += [rename(*pair, verb="exchange") for pair in itertools.combinations("abcdef", 2)]
    names: dict[str, bytes | None] = {**dict.fromkeys("abcdef", b""), "x": None, "y": None}
    out = laid_out(tmp_path / "out", frozenset(names.items()))
    with played(tmp_path / "recording", steps, 7) as recording, pytest.raises(InconclusiveError, match="more than 3"):
        admits(recording, len(steps) - 7, FileSystem.POSIX, out)

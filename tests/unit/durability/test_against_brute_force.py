"""The model against a simulator that tries everything: small logs, every file system, both directions."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.model import FileSystem
from chaos.states.building import build
from chaos.states.durability import admits, enumerate_losses, size_of_set, tree_after
from chaos.states.recording import Recording

from .brute_force import PAGE, Log, State, Step, TooManyStatesError, Value, survivors
from .conftest import played, seen

MOST_STATES = 1_500
NAMES = ("a", "b", "d", "d/a", "d/b", "e", "e/a")  # a folder before what is in it
OFFSETS = (0, 0, 1000, PAGE, PAGE + 3000, 2 * PAGE)
SIZES = (0, 100, PAGE, PAGE + 1000, 2 * PAGE, 3 * PAGE)
LENGTHS = (200, PAGE, PAGE, PAGE + 1500, 2 * PAGE)
SYNCS = ("fsync", "fsync", "fsync", "fdatasync", "msync", "sync_file_range", "sync", "syncfs", "failed")
VERBS = (
    *("make", "make", "folder", "symlink", "link", "unlink", "rename", "rename", "rename", "exchange"),
    *("write", "write", "write", "write", "append", "durable", "resize", "resize", "allocate", "zero"),
    *("sync", "sync", "sync", "sync", "sync", "folder sync", "folder sync"),
)
Draw = tuple[str, int, int, int]


@dataclass(slots=True)
class Writer:
    """Turns drawn numbers into steps that a process could do."""

    log: Log = field(default_factory=Log)
    steps: list[Step] = field(default_factory=list)

    def take(self, drawn: Draw) -> None:
        """Add a step, if the draw makes sense here."""
        verb, *numbers = drawn
        step = self._content(verb, *numbers) or self._names(verb, *numbers) or self._sync(verb, *numbers)
        if step is not None:
            self.log.take(len(self.steps), step)
            self.steps.append(step)

    def _paths(self) -> dict[str, int]:
        """Return all paths with their nodes."""
        found = {}
        for path in NAMES:
            base, _, name = path.rpartition("/")
            if not base or self.log.kinds.get(found.get(base, -1)) == "folder":
                node = self.log.cells.get((found.get(base, 0), name))
                if node is not None:
                    found[path] = node
        return found

    def _content(self, verb: str, which: int, where: int, much: int) -> Step | None:
        """Return a step that changes a file's bytes; it may have lost its name."""
        files = [node for node, kind in self.log.kinds.items() if kind == "file"]
        if not files:
            return None
        node = files[which % len(files)]
        path, size = f"@{node}", len(self.log.content[node])
        offset = OFFSETS[where % len(OFFSETS)]
        data = bytes([ord("A") + len(self.steps)]) * min(LENGTHS[much % len(LENGTHS)], 3 * PAGE - offset)
        durability = ("data", "all")[(where + much) % 2] if verb == "durable" else "none"
        write = Step(verb="write", path=path, offset=offset, data=data, durability=durability)
        steps = {
            "write": write,
            "durable": write,
            "append": Step(verb="write", path=path, offset=size, data=data[:PAGE]) if size < 2 * PAGE else None,
            "resize": Step(verb="resize", path=path, size=SIZES[much % len(SIZES)]),
            "allocate": Step(verb="allocate", path=path, offset=offset, size=len(data)),
            "zero": Step(verb="zero", path=path, offset=offset % size, size=len(data)) if size else None,
        }
        return steps.get(verb)

    def _names(self, verb: str, which: int, where: int, _: int) -> Step | None:
        """Return a step that changes names."""
        paths = self._paths()
        free = [path for path in NAMES if path not in paths and self._is_place(path, paths)]
        if verb in ("make", "folder", "symlink") and free and len(self.log.kinds) < 6:
            kind = "file" if verb == "make" else verb
            return Step(verb="make", path=free[which % len(free)], call=kind, target="a" * (kind == "symlink"))
        if not paths:
            return None
        path = list(paths)[which % len(paths)]
        is_file = self.log.kinds[paths[path]] == "file"
        match verb:
            case "link" if free and is_file:
                return Step(verb="link", path=path, target=free[where % len(free)])
            case "unlink":
                return Step(verb="unlink", path=path)
            case "rename" | "exchange":
                targets = [target for target in self._targets(path, paths) if verb == "rename" or target in paths]
                return Step(verb=verb, path=path, target=targets[where % len(targets)]) if targets else None
        return None

    def _is_place(self, path: str, paths: dict[str, int]) -> bool:
        """Tell whether a path lies in a folder that is there."""
        base, _, _ = path.rpartition("/")
        return not base or (base in paths and self.log.kinds[paths[base]] == "folder")

    def _targets(self, path: str, paths: dict[str, int]) -> list[str]:
        """Return where a name may be moved to."""
        found = []
        for target in NAMES:
            is_nested = target.startswith(path + "/") or path.startswith(target + "/")
            if target != path and not is_nested and self._is_place(target, paths):
                there = paths.get(target)
                kinds = self.log.kinds[paths[path]], self.log.kinds.get(there if there is not None else -1)
                is_full = any(folder == there for folder, _ in self.log.cells)
                if there is None or ((kinds[0] == "folder") == (kinds[1] == "folder") and not is_full):
                    found.append(target)
        return found

    def _sync(self, verb: str, which: int, how: int, _: int) -> Step | None:
        """Return a step that makes something durable, or fails to."""
        call = SYNCS[how % len(SYNCS)]
        if verb == "folder sync":
            folders = [node for node, kind in self.log.kinds.items() if kind == "folder"]
            node = folders[which % len(folders)]
            return Step(verb="sync", path=f"@{node}" if node else "", call="fdatasync" if how % 7 == 3 else "fsync")
        if verb != "sync":
            return None
        if call in ("sync", "syncfs"):
            return Step(verb="sync", path=None, call=call)
        nodes = [node for node, kind in self.log.kinds.items() if kind == "file"]
        if not nodes:
            return None
        has_failed = call == "failed"
        call = "fsync" if has_failed else call
        return Step(verb="sync", path=f"@{nodes[which % len(nodes)]}", call=call, has_failed=has_failed)


def written(before: Iterable[Draw], after: Iterable[Draw]) -> tuple[list[Step], int]:
    """Return the steps that draws lead to, and how many of them are before the first operation."""
    writer = Writer()
    for drawn in before:
        writer.take(drawn)
    begin = len(writer.steps)
    for drawn in after:
        writer.take(drawn)
    return writer.steps, begin


NUMBERS = st.integers(0, 9)
DRAWS = st.tuples(st.sampled_from(VERBS), NUMBERS, NUMBERS, NUMBERS)
LOGS = st.builds(written, st.lists(DRAWS, max_size=5), st.lists(DRAWS, min_size=4, max_size=11))


def allowed(steps: list[Step], begin: int, file_system: FileSystem) -> tuple[int, set[State]]:
    """Return the last point with no more states than can be tried, and these."""
    for index in range(len(steps) - begin, -1, -1):
        try:
            return index, survivors(steps, begin, index, file_system.value, MOST_STATES)
        except TooManyStatesError:
            continue
    raise AssertionError("before the first operation there is one state")


@pytest.mark.parametrize("file_system", FileSystem)
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(log=LOGS)
def test_exactly_the_states_that_the_rules_allow(file_system: FileSystem, log: tuple[list[Step], int]) -> None:
    """No state is missing, and none is too many; each is enumerated once, and the number told is no smaller."""
    steps, begin = log
    index, expected = allowed(steps, begin, file_system)
    with tempfile.TemporaryDirectory() as folder, played(Path(folder, "recording"), steps, begin) as recording:
        losses = enumerate_losses(recording, index, (file_system,), None)
        found = [seen(tree_after(recording, index, loss), recording) for loss in losses]
        assert set(found) == expected
        assert size_of_set(recording, index, file_system) >= len(expected)


def looked_at(folder: Path) -> State:
    """Return what is to be seen in a real folder."""
    found: dict[str, Value] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        found[name] = str(path.readlink()) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
    return frozenset(found.items())


def mutate(folder: Path, random: Random) -> None:
    """Change one thing in a real folder: a name, a length, a byte, a page, or the contents of two files."""
    paths = sorted(folder.rglob("*"))
    files = [path for path in paths if path.is_file() and not path.is_symlink()]
    kind = random.randrange(7) if files else random.randrange(2)
    path = random.choice(files or paths or [folder / "z"])
    data = path.read_bytes() if files else b""
    if kind == 0:
        remove(path)
    elif kind == 1:
        other = folder / random.choice(("a", "b", "e", "z"))
        if not os.path.lexists(other):
            other.write_bytes(data) if random.randrange(3) else other.mkdir()
    elif kind == 2:
        path.write_bytes(data[: random.choice((0, 100, PAGE, len(data) // 2))])
    elif kind == 3:
        path.write_bytes(data + random.choice((b"\0", bytes(PAGE), b"z")))
    elif kind == 4 and data:
        place = random.randrange(len(data))
        path.write_bytes(data[:place] + random.choice((b"\0", b"z")) + data[place + 1 :])
    elif kind == 5:
        page = random.randrange(3) * PAGE
        path.write_bytes(data[:page] + bytes(len(data[page : page + PAGE])) + data[page + PAGE :])
    else:
        path.write_bytes(random.choice(files).read_bytes())


def remove(path: Path) -> None:
    """Take a path away, whatever it is."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def complaint_about(
    recording: Recording, index: int, file_system: FileSystem, folder: Path, expected: set[State]
) -> str:
    """Return what is wrong with the answer for a real folder; nothing where it is right."""
    state = looked_at(folder)
    answer = admits(recording, index, file_system, folder)
    return "" if (answer == "") == (state in expected) else f"{answer!r} for {sorted(state)}"


@pytest.mark.parametrize("file_system", FileSystem)
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(log=LOGS, seed=st.integers(0, 1 << 30))
def test_a_real_folder_is_admitted_exactly_if_it_can_be(
    file_system: FileSystem, log: tuple[list[Step], int], seed: int
) -> None:
    """States that are built are admitted; ones with something changed are, if they happen to be states, too."""
    steps, begin = log
    index, expected = allowed(steps, begin, file_system)
    random = Random(seed)
    with tempfile.TemporaryDirectory() as base, played(Path(base, "recording"), steps, begin) as recording:
        losses = list(enumerate_losses(recording, index, (file_system,), None))
        for number, loss in enumerate(random.sample(losses, min(len(losses), 6))):
            folder = Path(base, str(number))
            folder.mkdir()
            build(tree_after(recording, index, loss), folder, recording.store)
            assert complaint_about(recording, index, file_system, folder, expected) == ""
            for _ in range(3):
                mutate(folder, random)
                assert complaint_about(recording, index, file_system, folder, expected) == ""

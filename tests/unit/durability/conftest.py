"""Recordings written by hand: each call is one operation, and what it changes goes straight into the log."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import pytest

from chaos.model import FileSystem
from chaos.states.changes import (
    ROOT,
    Allocated,
    Change,
    Durability,
    Linked,
    Made,
    NodeKind,
    Renamed,
    Resized,
    Synced,
    Unlinked,
    Wrote,
    Zeroed,
)
from chaos.states.content import ChangeWriter, ContentStore
from chaos.states.durability import enumerate_losses, tree_after
from chaos.states.log import CHANGES, CONTENT, End, Head
from chaos.states.recording import Recording
from chaos.states.tree import Node, Tree

from .brute_force import State, Step, Value


class Script:
    """Writes a recording, one operation a call; paths are relative to the folder. `begun` ends what was there before.

    A path `@3` is node 3, counted as they are made, whatever its name. Each method returns the index of its operation.
    """

    def __init__(self, folder: Path) -> None:
        """Begin an empty folder's recording."""
        folder.mkdir(parents=True)
        self._folder = folder
        self._store = ContentStore(folder / CONTENT, is_new=True)
        self._writer = ChangeWriter(folder / CHANGES)
        self._writer.write(Head())
        self._tree = Tree(self._store)
        self._numbers = itertools.count(1)
        self._index = -1
        self._has_begun = False

    def begun(self) -> Self:
        """Let everything so far have been there, durable, before the first operation."""
        self._has_begun = True
        return self

    def _emit(self, call: str, *changes: Change) -> int:
        """Write the changes of one operation."""
        self._index += self._has_begun
        for change in changes:
            told = type(change)(**{**_fields(change), "index": self._index, "call": call})
            self._tree.apply(told)
            self._writer.write(told)
        return self._index

    def _node(self, path: str) -> Node:
        """Return what a path leads to."""
        node = self._tree.nodes.get(int(path[1:])) if path.startswith("@") else self._tree.find(path)
        assert node is not None, path
        return node

    def _place(self, path: str) -> tuple[int, str]:
        """Return the folder and the name of a path."""
        base, _, name = path.rpartition("/")
        return self._node(base).number, name

    def make(self, path: str, data: bytes = b"", *, kind: NodeKind = NodeKind.FILE, text: str = "") -> int:
        """Make a file (or folder, or link), and write what it is to hold as a further operation."""
        parent, name = self._place(path)
        number = next(self._numbers)
        index = self._emit("openat", Made(node=number, kind=kind, parent=parent, name=name, text=text))
        return self.write(path, 0, data) if data else index

    def write(self, path: str, offset: int, data: bytes, durability: Durability = Durability.NONE) -> int:
        """Write into a file."""
        piece = self._store.put(data)
        node = self._node(path).number
        return self._emit("write", Wrote(node=node, offset=offset, pieces=(piece,), durability=durability))

    def resize(self, path: str, size: int) -> int:
        """Cut a file, or let it grow."""
        return self._emit("ftruncate", Resized(node=self._node(path).number, size_bytes=size))

    def allocate(self, path: str, offset: int, length: int) -> int:
        """Set room aside, and let the file grow as far."""
        node = self._node(path)
        size = max(node.extents.size, offset + length)
        change = Allocated(node=node.number, offset=offset, length_bytes=length, size_bytes=size)
        return self._emit("fallocate", change)

    def zero(self, path: str, offset: int, length: int) -> int:
        """Punch a hole."""
        node = self._node(path)
        change = Zeroed(node=node.number, offset=offset, length_bytes=length, size_bytes=node.extents.size)
        return self._emit("fallocate", change)

    def link(self, path: str, new: str) -> int:
        """Give a file a further name."""
        parent, name = self._place(new)
        return self._emit("link", Linked(node=self._node(path).number, parent=parent, name=name))

    def unlink(self, path: str) -> int:
        """Take a name away."""
        parent, name = self._place(path)
        return self._emit("unlink", Unlinked(parent=parent, name=name))

    def rename(self, path: str, new: str, *, is_exchange: bool = False) -> int:
        """Move a name, or let two change places."""
        parent, name = self._place(path)
        new_parent, new_name = self._place(new)
        change = Renamed(parent=parent, name=name, new_parent=new_parent, new_name=new_name, is_exchange=is_exchange)
        return self._emit("rename", change)

    def sync(self, path: str | None, call: str = "fsync", *, has_failed: bool = False) -> int:
        """Make a file, a folder (the empty path is the whole folder) or everything (None) durable."""
        node = None if path is None else self._node(path).number if path else ROOT
        return self._emit(call, Synced(node=node, has_failed=has_failed))

    def play(self, step: Step) -> int:
        """Do what a step of the simulator says."""
        path, target = step.path or "", step.target
        plays: dict[str, Callable[[], int]] = {
            "make": lambda: self.make(path, kind=NodeKind(step.call), text=target),
            "write": lambda: self.write(path, step.offset, step.data, Durability(step.durability)),
            "resize": lambda: self.resize(path, step.size),
            "allocate": lambda: self.allocate(path, step.offset, step.size),
            "zero": lambda: self.zero(path, step.offset, step.size),
            "link": lambda: self.link(path, target),
            "unlink": lambda: self.unlink(path),
            "rename": lambda: self.rename(path, target),
            "exchange": lambda: self.rename(path, target, is_exchange=True),
            "sync": lambda: self.sync(step.path, step.call, has_failed=step.has_failed),
        }
        return plays[step.verb]()

    def close(self) -> Recording:
        """End the recording and open it."""
        self._writer.write(End(num_operations=self._index + 1))
        self._writer.close()
        self._store.close()
        return Recording(self._folder)


def _fields(change: Change) -> dict[str, object]:
    """Return a change's fields."""
    return {name: getattr(change, name) for name in change.__struct_fields__}


def played(folder: Path, steps: Sequence[Step], begin: int) -> Recording:
    """Return the recording of steps, of which the first `begin` made what was there."""
    script = Script(folder)
    for number, step in enumerate(steps):
        if number == begin:
            script.begun()
        script.play(step)
    return (script.begun() if begin == len(steps) else script).close()


def seen(tree: Tree, recording: Recording) -> State:
    """Return every path of a folder with the bytes of files; None for folders, the text of links."""
    found: dict[str, Value] = {}
    for path, node in tree.walk():
        match node.kind:
            case NodeKind.FILE:
                found[path] = node.extents.read(0, node.extents.size, recording.store)
            case NodeKind.SYMLINK:
                found[path] = node.text
            case _:
                found[path] = None
    return frozenset(found.items())


def after_loss(recording: Recording, index: int, file_system: FileSystem, limit: int | None = None) -> list[State]:
    """Return what can be seen in every state that is enumerated at a point, in order."""
    losses = enumerate_losses(recording, index, (file_system,), limit)
    return [seen(tree_after(recording, index, loss), recording) for loss in losses]


@pytest.fixture
def script(tmp_path: Path) -> Callable[[], Script]:
    """Give a maker of recordings."""
    numbers = itertools.count()
    return lambda: Script(tmp_path / f"recording-{next(numbers)}")

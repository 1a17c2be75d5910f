"""What a recorder has written down so far: the changes, the folder as they explain it, and which node each inode is."""

# ruff: noqa: PTH116, PTH118, PTH120 - names are bytes

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from chaos.errors import HarnessError
from chaos.states.changes import (
    BEFORE_ALL,
    ROOT,
    SYNCED_ELSEWHERE,
    Change,
    Linked,
    Made,
    NodeKind,
    Resized,
    Stamp,
    Stamped,
    Synced,
    to_bytes,
    to_text,
)
from chaos.states.comparing import differences
from chaos.states.content import ChangeWriter, ContentStore, failed_to_store
from chaos.states.log import CHANGES, CONTENT, End, StateAt, head_for
from chaos.states.reading import (
    Identity,
    descriptor_path,
    entries,
    generation,
    identity,
    kind_of,
    link_text,
    open_to_read,
    stamp,
    stored_writes,
)
from chaos.states.recording import Recording
from chaos.states.tree import Node, Tree, UnknownNodeError


class Book:
    """One recording in the making. `index` and `call` are what the next changes are put down to."""

    def __init__(self, folder: Path, out: Path, base: tuple[Path, StateAt] | None) -> None:
        """Make a recording in `folder` of what is in `out`, which is the state `base` where one is given.

        Raises HarnessError where the disk is full, or `out` is not what `base` says.
        """
        self.index = BEFORE_ALL
        self.call = ""
        self.out = os.fsencode(os.path.realpath(out))
        self.lost: set[str] = set()
        self.synced_outside: set[Identity] = set()
        self._numbers: dict[Identity, int] = {}
        self._generations: dict[int, int | None] = {}
        self._next_number = ROOT + 1
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failed_to_store(error, folder) from error
        with ExitStack() as opened:
            self._base = None if base is None else opened.enter_context(Recording(base[0]))
            parent = None if self._base is None else self._base.store
            self.store = ContentStore(folder / CONTENT, parent, is_new=True)
            opened.callback(self.store.close)
            self._writer = ChangeWriter(folder / CHANGES)
            opened.callback(self._writer.close)
            self._writer.write(head_for(folder, base))
            self.tree = Tree(self.store)
            if self._base is not None and base is not None:
                self._go_on_from(self._base.tree_at(base[1]), out)
            else:
                self._import_all()
            self._opened = opened.pop_all()

    def _import_all(self) -> None:
        """Take what is in the folder as it is."""
        state = os.stat(self.out)
        self._numbers[identity(state)] = ROOT
        for name in entries(self.out):
            self.arrive(name)
        self.emit(Stamped(stamps=(stamp(ROOT, os.stat(self.out)),)))

    def _go_on_from(self, tree: Tree, out: Path) -> None:
        """Take the folder as a known state, and correct times: those of a torn write are the whole one's."""
        self._next_number = max(tree.nodes) + 1
        tree.forget_nameless()
        tree.content = self.store
        self.tree = tree
        stamps = []
        for path, node in (("", tree.nodes[ROOT]), *tree.walk()):
            full = os.path.join(self.out, to_bytes(path))
            try:
                state = os.stat(full, follow_symlinks=False)
            except OSError:
                continue  # named below
            self.know(node.number, state, full)
            if kind_of(state) is node.kind and state.st_mtime_ns != node.modified_ns:
                stamps.append(replace(stamp(node.number, state), mode=node.mode))
        if stamps:
            self.emit(Stamped(stamps=tuple(stamps)))
        if found := differences(tree, out):
            message = f"the output folder is not the crash state that it should be: {', '.join(found[:5])}"
            raise HarnessError(message, hint="something else wrote there; start again")

    def emit(self, change: Change, *, call: str | None = None) -> None:
        """Write a change down, with the index and call that hold now; UnknownNodeError where it does not fit."""
        change = replace(change, index=self.index, call=self.call if call is None else call)
        self.tree.apply(change)
        self._writer.write(change)

    def close(self, num_operations: int | None) -> None:
        """Close the files; with a number of operations the recording is whole."""
        if num_operations is not None:
            self._writer.write(End(num_operations=num_operations))
        self._opened.close()

    # --- names --------------------------------------------------------------------------------------

    def full(self, path: bytes) -> bytes:
        """Return the real place of a path that is relative to the folder."""
        return os.path.join(self.out, path)

    def place(self, path: bytes) -> tuple[int, str]:
        """Return the folder and the name that a relative path is; UnknownNodeError where the folder is not known."""
        folder, name = os.path.split(path)
        parent = self.tree.find(to_text(folder))
        if parent is None or not name:
            raise UnknownNodeError(to_text(path))
        return parent.number, to_text(name)

    def at(self, path: bytes) -> Node | None:
        """Return the node that a relative path leads to."""
        return self.tree.find(to_text(path))

    def stamp_folders(self, *paths: bytes) -> None:
        """Write down the times of the folders that relative paths are in."""
        stamps = {item.node: item for item in map(self.folder_stamp, paths)}
        self.emit(Stamped(stamps=tuple(stamps.values())))

    def folder_stamp(self, path: bytes) -> Stamp:
        """Return the stamp of the folder that a relative path is in."""
        parent, _ = self.place(path)
        return stamp(parent, os.stat(self.full(os.path.dirname(path))))

    # --- nodes --------------------------------------------------------------------------------------

    def know(self, number: int, state: os.stat_result, path: bytes) -> None:
        """Remember which inode a node is, and for a file, which generation of it."""
        self._numbers[identity(state)] = number
        if kind_of(state) is not NodeKind.FILE:
            return
        try:
            fd = open_to_read(path)
        except OSError:
            return  # not readable for us: then its number is taken as proof
        try:
            self._generations[number] = generation(fd)
        finally:
            os.close(fd)

    def number_of(self, state: os.stat_result) -> int | None:
        """Return the node that an inode is, if it has a name (so that its number cannot have been given away)."""
        number = self._numbers.get(identity(state))
        return number if number == ROOT or (number is not None and self.tree.node(number).names) else None

    def of_descriptor(self, fd: int) -> int:
        """Return the node behind a descriptor; a file without a name that is new to us is taken in.

        A number whose file is gone may be another file's by now, opened without a name (O_TMPFILE): the generation
        tells.
        """
        state = os.fstat(fd)
        number = self.number_of(state)
        if number is not None:
            return number
        number = self._numbers.get(identity(state))
        is_alike = number is not None and self.tree.node(number).kind is kind_of(state)
        if number is not None and is_alike and self._generations.get(number) in (None, generation(fd)):
            return number
        return self._take_in(fd, state)

    def stamp_again(self, fd: int) -> None:
        """Write down permissions and time of what is behind a descriptor, where they are not as known."""
        now = stamp(self.of_descriptor(fd), os.fstat(fd))
        node = self.tree.node(now.node)
        if (now.mode, now.modified_ns) != (node.mode, node.modified_ns):
            self.emit(Stamped(stamps=(now,)))

    def make(self, state: os.stat_result, path: bytes, *, place: tuple[int, str] | None, text: str = "") -> int:
        """Write down a new node, with its stamp (not its folder's), and return its number.

        `path` leads to it; UnknownNodeError for what is no file, folder, link or FIFO.
        """
        kind = kind_of(state)
        if kind is None:
            raise UnknownNodeError(to_text(path))
        number, self._next_number = self._next_number, self._next_number + 1
        parent, name = place if place is not None else (None, "")
        stamps = (stamp(number, state),)
        self.emit(Made(node=number, kind=kind, parent=parent, name=name, text=text, stamps=stamps))
        self.know(number, state, path)
        return number

    def _take_in(self, fd: int, state: os.stat_result) -> int:
        """Write down a file without a name, with what it holds."""
        path = descriptor_path(fd)
        number = self.make(state, path, place=None)
        if kind_of(state) is NodeKind.FILE:
            self.import_content(number, path)
        return number

    def arrive(self, path: bytes) -> None:
        """Write down what has come to a relative path from elsewhere, with all that is below it."""
        full = self.full(path)
        state = os.stat(full, follow_symlinks=False)
        kind = kind_of(state)
        if kind is None:
            return
        known, (parent, name) = self.number_of(state), self.place(path)
        if known is not None:
            self.emit(Linked(node=known, parent=parent, name=name))
            return
        text = link_text(full) if kind is NodeKind.SYMLINK else ""
        number = self.make(state, full, place=(parent, name), text=text)
        if kind is NodeKind.FILE:
            try:
                self.import_content(number, full)
            except OSError:
                self.lost.add(to_text(path))
            if identity(state) in self.synced_outside:
                self.emit(Synced(node=number), call=SYNCED_ELSEWHERE)
        for entry in entries(full) if kind is NodeKind.FOLDER else ():
            self.arrive(os.path.join(path, entry))

    def import_content(self, number: int, path: bytes) -> None:
        """Write down all that a file holds, whose node is empty; OSError where it cannot be read."""
        fd = open_to_read(path)
        try:
            for change in stored_writes(self.store, fd, number):
                self.emit(change)
            size = os.fstat(fd).st_size
        finally:
            os.close(fd)
        if self.tree.node(number).extents.size != size:
            self.emit(Resized(node=number, size_bytes=size))

    def import_again(self, number: int, fd: int) -> None:
        """Write down all that a file holds now, in the place of what was known of it."""
        self.emit(Resized(node=number, size_bytes=0))
        self.import_content(number, descriptor_path(fd))
        self.emit(Stamped(stamps=(stamp(number, os.fstat(fd)),)))

"""A folder as a model: names that lead to nodes, changed by what a recording tells; nothing here touches the disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import xxhash

from chaos.states.changes import (
    ROOT,
    Allocated,
    Attributed,
    Change,
    Linked,
    Made,
    NodeKind,
    Renamed,
    Resized,
    Stamp,
    Stamped,
    Unlinked,
    Wrote,
    Zeroed,
)
from chaos.states.content import Content
from chaos.states.extents import Extents

_FOLDER_MODE: Final = 0o755


class UnknownNodeError(Exception):
    """A change tells of a node or a name that the model does not have."""


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """One file, folder, symbolic link or FIFO; `names` are its (folder, name) pairs, `entries` a folder's.

    `touched` counts up: of two files the one that was written, or whose time was set, last has the larger one.
    `is_dated`: its time was set by the target, and it was not written since.
    """

    number: int
    kind: NodeKind
    mode: int = 0
    modified_ns: int = 0
    touched: int = 0
    is_dated: bool = False
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    extents: Extents = field(default_factory=Extents)
    entries: dict[str, int] = field(default_factory=dict)
    names: set[tuple[int, str]] = field(default_factory=set)
    digest: bytes | None = None

    def copy(self, number: int) -> Node:
        """Return a node of another number that is like this one, without a name."""
        return replace(
            self,
            number=number,
            extents=self.extents.copy(),
            entries=self.entries.copy(),
            names=set(),
            digest=None,
        )


class Tree:
    """A folder with all that is in it; nodes without a name are kept, since they may be written and get one again."""

    def __init__(self, content: Content) -> None:
        """Begin with an empty folder; `content` gives the bytes of pieces when a digest is asked for."""
        self.content = content
        self.nodes = {ROOT: Node(number=ROOT, kind=NodeKind.FOLDER, mode=_FOLDER_MODE)}
        self._shared: set[int] = set()
        self._links_digest: bytes | None = None
        self._clock = 0
        self._order: bytes | None = None

    def copy(self) -> Tree:
        """Return the same folder, to be changed apart."""
        other = Tree(self.content)
        other.nodes = {number: node.copy(number) for number, node in self.nodes.items()}
        for number, node in self.nodes.items():
            other.nodes[number].names = node.names.copy()
        other._shared = self._shared.copy()
        other._clock = self._clock
        return other

    # --- looking ------------------------------------------------------------------------------------

    def node(self, number: int) -> Node:
        """Return a node; UnknownNodeError where there is none of this number."""
        try:
            return self.nodes[number]
        except KeyError as error:
            raise UnknownNodeError(str(number)) from error

    def find(self, path: str) -> Node | None:
        """Return the node that a path (relative, as changes write names) leads to, None where there is none."""
        node = self.nodes[ROOT]
        for name in path.split("/") if path not in ("", ".") else ():
            number = node.entries.get(name)
            if number is None:
                return None
            node = self.nodes[number]
        return node

    def paths(self, node: Node) -> list[str]:
        """Return all names of a node, relative to the folder, in order; the folder itself is `.`."""
        if node.number == ROOT:
            return ["."]
        found = []
        for parent, name in node.names:
            found += [name if base == "." else f"{base}/{name}" for base in self.paths(self.nodes[parent])]
        return sorted(found)

    def walk(self, folder: Node | None = None, base: str = "") -> Iterator[tuple[str, Node]]:
        """Yield every name below the folder with its node, a folder before what is in it."""
        for name, number in sorted((folder or self.nodes[ROOT]).entries.items()):
            node, path = self.nodes[number], base + name
            yield path, node
            if node.kind is NodeKind.FOLDER:
                yield from self.walk(node, path + "/")

    def digest(self) -> str:
        """Return a digest of all that can be seen in the folder, hexadecimal.

        Names, kinds, contents, permissions, extended attributes, texts of links, and which names are of one file; not
        times. Equal folders have equal digests, however they came about. A change since the last call costs what it
        changed.
        """
        state = xxhash.xxh3_128(self._digest(self.nodes[ROOT]))
        if self._links_digest is None:
            groups = sorted("\0".join(self.paths(self.nodes[number])) for number in self._shared)
            self._links_digest = xxhash.xxh3_128_digest("\0\0".join(groups).encode())
        state.update(self._links_digest)
        return state.hexdigest()

    def state_digest(self) -> str:
        """Return a digest of all that can be seen in the folder, and of its times, so far as they are not by chance.

        That is the order in which files changed last (a target may choose its newest checkpoint by time), and which of
        them have a time that the target has set.
        """
        if self._order is None:
            files = [(node.touched, path, node.is_dated) for path, node in self.walk() if node.kind is NodeKind.FILE]
            lines = (f"{path}\0{is_dated}\n" for _, path, is_dated in sorted(files))
            self._order = xxhash.xxh3_128_digest("".join(lines).encode())
        return xxhash.xxh3_128_hexdigest(self.digest().encode() + self._order)

    def _digest(self, node: Node) -> bytes:
        """Return the digest of a node and all below it."""
        if node.digest is None:
            state = xxhash.xxh3_128(
                f"{node.kind} {node.mode:o} {sorted(node.attributes.items())} {node.text}\0".encode()
            )
            if node.kind is NodeKind.FILE:
                state.update(node.extents.digest(self.content))
            for name, number in sorted(node.entries.items()):
                state.update(name.encode() + b"\0" + self._digest(self.nodes[number]))
            node.digest = state.digest()
        return node.digest

    # --- changing -----------------------------------------------------------------------------------

    def apply(self, change: Change, *, start: int = 0, end: int | None = None) -> None:
        """Do what a change tells; of written bytes only those from file offset `start` to `end`.

        Raises UnknownNodeError where it does not fit: then the recording is not of this folder.
        """
        match change:
            case Made():
                self.nodes[change.node] = Node(number=change.node, kind=change.kind, text=change.text)
                self._touch(self.nodes[change.node])
                if change.parent is not None:
                    self._attach(change.parent, change.name, change.node)
            case Wrote() | Resized() | Allocated() | Zeroed():
                self._apply_content(change, start, end)
            case Linked():
                self._attach(change.parent, change.name, change.node)
            case Unlinked():
                self._abandon(self._detach(change.parent, change.name))
            case Renamed():
                self._rename(change)
            case Attributed():
                self.node(change.node).attributes = change.attributes
                self._soil(self.node(change.node))
            case _:
                pass
        for stamp in change.stamps:
            self._stamp(stamp)
            if isinstance(change, Stamped) and change.call.startswith("utime"):
                self._touch(self.node(stamp.node), is_dated=True)

    def _touch(self, node: Node, *, is_dated: bool = False) -> None:
        """Note that a node is the one that changed last."""
        if node.touched != self._clock or not self._clock or node.is_dated != is_dated:
            self._clock += 1
            node.touched, node.is_dated = self._clock, is_dated
            self._order = None

    def _apply_content(self, change: Wrote | Resized | Allocated | Zeroed, start: int, end: int | None) -> None:
        """Change the bytes of a file."""
        node = self.node(change.node)
        node.extents.apply(change, start=start, end=end)
        self._touch(node)
        self._soil(node)

    def _stamp(self, stamp: Stamp) -> None:
        """Set permissions and time of a node."""
        node = self.node(stamp.node)
        if node.mode != stamp.mode:
            node.mode = stamp.mode
            self._soil(node)
        node.modified_ns = stamp.modified_ns

    def _rename(self, change: Renamed) -> None:
        """Move a name, or let two change places; two names of one file stay as they are (rename(2))."""
        old = self.node(change.parent).entries.get(change.name)
        new = self.node(change.new_parent).entries.get(change.new_name)
        if old is not None and old == new:
            return
        moved = self._detach(change.parent, change.name)
        if new is not None:
            replaced = self._detach(change.new_parent, change.new_name)
            if change.is_exchange:
                self._attach(change.parent, change.name, replaced.number)
            else:
                self._abandon(replaced)
        self._attach(change.new_parent, change.new_name, moved.number)

    def put_name(self, parent: int, name: str, number: int | None) -> None:
        """Let a name lead to a node, or to nothing (None), whatever it led to; nothing below a node is taken apart."""
        if self.node(parent).entries.get(name) != number:
            if name in self.node(parent).entries:
                self._detach(parent, name)
            if number is not None:
                self._attach(parent, name, number)

    def copy_of(self, node: Node) -> int:
        """Make a second file like `node`, without a name, and return its number."""
        number = max(self.nodes) + 1
        self.nodes[number] = node.copy(number)
        return number

    def put_bytes(self, number: int, extents: Extents) -> None:
        """Let a file have these bytes."""
        node = self.node(number)
        node.extents = extents
        self._touch(node)
        self._soil(node)

    def _attach(self, parent: int, name: str, number: int) -> None:
        """Give a node a name."""
        folder, node = self.node(parent), self.node(number)
        folder.entries[name] = number
        node.names.add((parent, name))
        self._names_changed(folder, node)

    def _detach(self, parent: int, name: str) -> Node:
        """Take a name away and return the node that had it."""
        folder = self.node(parent)
        if name not in folder.entries:
            raise UnknownNodeError(name)
        node = self.nodes[folder.entries.pop(name)]
        node.names.discard((parent, name))
        self._names_changed(folder, node)
        return node

    def _abandon(self, node: Node) -> None:
        """Take apart what is below a folder that has no name any more, so that nobody counts as named by it."""
        if not node.names:
            for name in list(node.entries):
                self._abandon(self._detach(node.number, name))

    def _names_changed(self, folder: Node, node: Node) -> None:
        """Note what a changed name makes stale."""
        self._soil(folder)
        if len(node.names) > 1:
            self._shared.add(node.number)
        else:
            self._shared.discard(node.number)
        self._links_digest = None
        self._order = None

    def _soil(self, node: Node) -> None:
        """Drop the digests that a changed node has part in; where one is missing, those above it are, too."""
        node.digest = None
        stack = [node]
        while stack:
            for parent, _ in stack.pop().names:
                above = self.nodes[parent]
                if above.digest is not None:
                    above.digest = None
                    stack.append(above)

    def forget_nameless(self) -> None:
        """Drop what has no name: after a kill nobody has it open any more."""
        for number in [n for n, node in self.nodes.items() if n != ROOT and not node.names]:
            del self.nodes[number]

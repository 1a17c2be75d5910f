"""A folder as a recording explains it against the real one: every name, kind, content, permission, time and link."""

# ruff: noqa: PTH116, PTH118 - names are bytes

from __future__ import annotations

import os
import stat
from pathlib import Path

import xxhash

from chaos.states.changes import ROOT, NodeKind, to_text
from chaos.states.content import Content
from chaos.states.extents import Extents
from chaos.states.reading import (
    Identity,
    data_ranges,
    entries,
    identity,
    kind_of,
    link_text,
    open_to_read,
    read_pieces,
)
from chaos.states.tree import Node, Tree


def differences(tree: Tree, out: Path) -> tuple[str, ...]:
    """Return the names in the real folder `out` that are not as `tree` says, and those that are missing there.

    Nothing may be running in the folder. Sockets and devices are not compared, nor the time of a folder that has some,
    since those come and go without being told; nor that of a symbolic link, or of a FIFO, which a write to it changes.
    """
    comparison = _Comparison(tree, os.fsencode(out))
    comparison.compare_folder(tree.nodes[ROOT], b"")
    return tuple(sorted(comparison.found))


class _Comparison:
    """One walk through the real folder along the model."""

    def __init__(self, tree: Tree, out: bytes) -> None:
        """Compare `tree` with the folder at `out`."""
        self.found: set[str] = set()
        self._tree = tree
        self._out = out
        self._numbers: dict[Identity, int] = {}
        self._identities: dict[int, Identity] = {}

    def compare_folder(self, node: Node, path: bytes) -> None:
        """Compare a folder and all that is in it; `path` is relative, empty for the whole."""
        full = os.path.join(self._out, path)
        missing, has_untold = set(node.entries), False
        for name in entries(full):
            text = to_text(name)
            state = os.stat(os.path.join(full, name), follow_symlinks=False)
            number = node.entries.get(text)
            missing.discard(text)
            if kind_of(state) is None:
                has_untold = True
            elif number is None:
                self._name(path, text)
            else:
                self._compare(self._tree.nodes[number], os.path.join(path, name), state)
        for text in missing:
            self._name(path, text)
        if not has_untold and os.stat(full).st_mtime_ns != node.modified_ns:
            self._name(path, ".")

    def _name(self, folder: bytes, name: str) -> None:
        """Note a name that is not as the model says."""
        base = to_text(folder)
        self.found.add(base or "." if name == "." else f"{base}/{name}".lstrip("/"))

    def _compare(self, node: Node, path: bytes, state: os.stat_result) -> None:
        """Compare one name with its node."""
        is_same_file = self._numbers.setdefault(
            identity(state), node.number
        ) == node.number and self._identities.setdefault(node.number, identity(state)) == identity(state)
        is_alike = kind_of(state) is node.kind and stat.S_IMODE(state.st_mode) == node.mode
        if is_same_file and is_alike and node.kind is NodeKind.FOLDER:
            self.compare_folder(node, path)
        elif not is_same_file or not is_alike or not self._has_content(node, path, state):
            self.found.add(to_text(path))

    def _has_content(self, node: Node, path: bytes, state: os.stat_result) -> bool:
        """Compare what a file or link holds, and a file's time."""
        full = os.path.join(self._out, path)
        if node.kind is NodeKind.SYMLINK:
            return link_text(full) == node.text
        if node.kind is NodeKind.FIFO:
            return True
        if state.st_mtime_ns != node.modified_ns:
            return False
        return node.kind is not NodeKind.FILE or has_bytes(node.extents, full, self._tree.content)


def has_bytes(extents: Extents, path: bytes, content: Content) -> bool:
    """Tell whether the real file at `path` has the length and bytes of `extents`; False where it cannot be read."""
    try:
        fd = open_to_read(path)
    except OSError:
        return False
    try:
        if os.fstat(fd).st_size != extents.size:
            return False
        position = 0
        for extent in extents:
            data = os.pread(fd, extent.end - extent.start, extent.start)
            if not _is_hole(fd, position, extent.start) or not _is_piece(data, extent.digest, extent.skip, content):
                return False
            position = extent.end
        return _is_hole(fd, position, extents.size)
    finally:
        os.close(fd)


def _is_piece(data: bytes, digest: str, skip: int, content: Content) -> bool:
    """Tell whether bytes are those of a piece from its byte `skip` on."""
    if skip == 0 and xxhash.xxh3_128_hexdigest(data) == digest:
        return True
    return content.read(digest)[skip : skip + len(data)] == data


def _is_hole(fd: int, start: int, end: int) -> bool:
    """Tell whether a real file has only zeros in a range."""
    return all(
        data == bytes(len(data)) for first, last in data_ranges(fd, start, end) for data in read_pieces(fd, first, last)
    )

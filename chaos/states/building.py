"""Make a real folder out of a model: a crash state that the target can be started on."""

# ruff: noqa: PTH101, PTH102, PTH118, PTH208, PTH211 - names are bytes

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from chaos.errors import HarnessError
from chaos.states.changes import ROOT, NodeKind, to_bytes
from chaos.states.content import ContentStore, failed_to_store
from chaos.states.tree import Node, Tree


def build(tree: Tree, out: Path, store: ContentStore) -> None:
    """Fill the empty folder `out` with what `tree` says: contents, holes, links, permissions and times.

    Raises HarnessError where the disk is full, or `out` is not an empty folder.
    """
    folder = os.fsencode(out)
    try:
        if os.listdir(folder):
            raise HarnessError(f"a crash state needs an empty folder: {out}", hint="remove what is in it")
        _Builder(tree, store).fill(tree.nodes[ROOT], folder)
    except OSError as error:
        raise failed_to_store(error, out) from error


class _Builder:
    """One folder in the making."""

    def __init__(self, tree: Tree, store: ContentStore) -> None:
        """Make what `tree` says, with bytes from `store`."""
        self._tree = tree
        self._store = store
        self._made: dict[int, bytes] = {}

    def fill(self, folder: Node, path: bytes) -> None:
        """Make all that is in a folder; then set its own permissions and time, which that would have changed."""
        for name, number in folder.entries.items():
            full = os.path.join(path, to_bytes(name))
            if number in self._made:
                os.link(self._made[number], full, follow_symlinks=False)
            else:
                self._made[number] = full
                self._make(self._tree.nodes[number], full)
        os.utime(path, ns=(folder.modified_ns, folder.modified_ns))
        os.chmod(path, folder.mode)

    def _make(self, node: Node, path: bytes) -> None:
        """Make one file, folder, link or FIFO."""
        match node.kind:
            case NodeKind.FOLDER:
                os.mkdir(path, 0o700)
                self.fill(node, path)
            case NodeKind.SYMLINK:
                os.symlink(to_bytes(node.text), path)
                os.utime(path, ns=(node.modified_ns, node.modified_ns), follow_symlinks=False)
            case NodeKind.FIFO:
                os.mkfifo(path, 0o600)
                os.utime(path, ns=(node.modified_ns, node.modified_ns))
                os.chmod(path, node.mode)
            case NodeKind.FILE:
                self._make_file(node, path)

    def _make_file(self, node: Node, path: bytes) -> None:
        """Write a file's extents; what lies between them stays a hole."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for extent in node.extents:
                length = extent.end - extent.start
                data = self._store.view(extent.digest)[extent.skip : extent.skip + length]
                _write_all(fd, data, extent.start)
            if os.fstat(fd).st_size != node.extents.size:
                os.ftruncate(fd, node.extents.size)
            os.utime(fd, ns=(node.modified_ns, node.modified_ns))
            os.fchmod(fd, node.mode)
        finally:
            with suppress(OSError):
                os.close(fd)


def _write_all(fd: int, data: memoryview, offset: int) -> None:
    """Write all of the data; OSError where the disk is full."""
    while data:
        written = os.pwrite(fd, data, offset)
        data, offset = data[written:], offset + written

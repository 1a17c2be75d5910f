"""Make a real folder out of a model: a crash state that the target can be started on."""

# ruff: noqa: PTH101, PTH116, PTH102, PTH118, PTH208, PTH211 - names are bytes

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
        _Builder(tree, store).make(folder)
    except OSError as error:
        raise failed_to_store(error, out) from error


class _Builder:
    """One folder in the making: folders first, then all else in the order in which it changed last.

    A target may look at the times of inodes (ctime), which cannot be set: they come out in that order, too.
    """

    def __init__(self, tree: Tree, store: ContentStore) -> None:
        """Make what `tree` says, with bytes from `store`."""
        self._tree = tree
        self._store = store
        self._made: dict[int, bytes] = {}

    def make(self, out: bytes) -> None:
        """Make everything below `out`."""
        named = [(os.path.join(out, to_bytes(path)), node) for path, node in self._tree.walk()]
        folders = [(path, node) for path, node in named if node.kind is NodeKind.FOLDER]
        for path, _ in folders:
            os.mkdir(path, 0o700)
        for path, node in sorted(named, key=lambda item: (item[1].touched, item[0])):
            if node.kind is not NodeKind.FOLDER:
                self._make(node, path)
        for path, node in reversed([(out, self._tree.nodes[ROOT]), *folders]):
            _set_attributes(path, node)
            os.utime(path, ns=(node.modified_ns, node.modified_ns))
            os.chmod(path, node.mode)

    def _make(self, node: Node, path: bytes) -> None:
        """Make one file, link or FIFO, or a further name of one."""
        if node.number in self._made:
            os.link(self._made[node.number], path, follow_symlinks=False)
            return
        self._made[node.number] = path
        match node.kind:
            case NodeKind.SYMLINK:
                os.symlink(to_bytes(node.text), path)
                os.utime(path, ns=(node.modified_ns, node.modified_ns), follow_symlinks=False)
            case NodeKind.FIFO:
                os.mkfifo(path, 0o600)
                os.utime(path, ns=(node.modified_ns, node.modified_ns))
                os.chmod(path, node.mode)
            case _:
                self._make_file(node, path)
        os.stat(path, follow_symlinks=False)  # once it was looked at, the kernel gives the next change a later time

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
            _set_attributes(fd, node)
            os.utime(fd, ns=(node.modified_ns, node.modified_ns))
            os.fchmod(fd, node.mode)
        finally:
            with suppress(OSError):
                os.close(fd)


def _set_attributes(file: int | bytes, node: Node) -> None:
    """Give a file or folder its extended attributes."""
    for name, value in node.attributes.items():
        os.setxattr(file, to_bytes(name), bytes.fromhex(value))


def _write_all(fd: int, data: memoryview, offset: int) -> None:
    """Write all of the data; OSError where the disk is full."""
    while data:
        written = os.pwrite(fd, data, offset)
        data, offset = data[written:], offset + written

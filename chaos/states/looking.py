"""Names and bytes of a folder, real or as a model: what can be compared after a restart, when all times are new."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from chaos.states.changes import NodeKind, to_text
from chaos.states.pages import Pages
from chaos.states.tree import Node, Tree

Contents = Mapping[str, bytes | None]
"""Every path, as changes write it, with a digest of length and bytes; None for what is no regular file."""


def contents_of_folder(out: Path) -> Contents:
    """Read a real folder; OSError where that is not possible."""
    found: dict[str, bytes | None] = {}
    top = os.fsencode(out)
    for folder, folders, files in os.walk(top, onerror=_raise):
        for name in (*folders, *files):
            path = os.path.join(folder, name)  # noqa: PTH118 - names are bytes
            found[to_text(os.path.relpath(path, top))] = _content_of_file(path)
    return found


def contents_of_tree(tree: Tree) -> Contents:
    """Return the same of a model of the folder."""
    return {path: content_of_node(tree, node) for path, node in tree.walk()}


def content_of_node(tree: Tree, node: Node) -> bytes | None:
    """Return the digest of one node's length and bytes; None where it is no regular file."""
    return node.extents.digest(tree.content) if node.kind is NodeKind.FILE else None


def _content_of_file(path: bytes) -> bytes | None:
    """Return the digest of one real file."""
    if not stat.S_ISREG(os.stat(path, follow_symlinks=False).st_mode):  # noqa: PTH116 - names are bytes
        return None
    pages = Pages()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - names are bytes
        size = os.fstat(file.fileno()).st_size
        pages.touch(0, size)
        return size.to_bytes(8, "little") + pages.update(size, lambda start, end: _read(file.fileno(), start, end))


def _read(fd: int, start: int, end: int) -> bytes:
    """Read from offset `start` to `end`; what is beyond the end of the file is zeros."""
    return os.pread(fd, end - start, start).ljust(end - start, b"\0")


def _raise(error: OSError) -> None:
    """Let an unreadable folder be an error, not an empty one."""
    raise error

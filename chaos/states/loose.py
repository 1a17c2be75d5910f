"""Calls that the kernel carries out by itself: what they touch is looked at again when their end can be known.

Such a call gives no sign of its end. It is over when the same thread makes its next call, or when nothing runs any
more; until then what it touches is looked at before each operation.
"""

# ruff: noqa: PTH116 - names are bytes

from __future__ import annotations

import os
from dataclasses import dataclass

from chaos.states.book import Book
from chaos.states.changes import Attributed, Stamp, Stamped, to_bytes
from chaos.states.reading import read_attributes, stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class _Touched:
    """A node that a call of a thread may change at any time; `fd` is a descriptor of ours for it, or -1."""

    thread_id: int
    node: int
    call: str
    fd: int
    has_bytes: bool


class LooseEnds:
    """The nodes that calls under way may still change."""

    def __init__(self, book: Book) -> None:
        """Write down in `book` what is found."""
        self._book = book
        self._touched: list[_Touched] = []

    def add(self, thread_id: int, node: int, call: str, *, fd: int = -1, has_bytes: bool = False) -> None:
        """Look at a node again: its permissions and time, and where it `has_bytes` written, all that it holds."""
        own = os.dup(fd) if fd >= 0 else -1
        self._touched.append(_Touched(thread_id=thread_id, node=node, call=call, fd=own, has_bytes=has_bytes))

    def settle(self, thread_id: int | None) -> None:
        """Look at all of them; those of a thread that goes on (None: of all) for the last time."""
        left = []
        for touched in self._touched:
            is_over = thread_id is None or touched.thread_id == thread_id
            self._look(touched, is_over=is_over)
            if not is_over:
                left.append(touched)
            elif touched.fd >= 0:
                os.close(touched.fd)
        self._touched = left

    def _look(self, touched: _Touched, *, is_over: bool) -> None:
        """Write down what has become of a node."""
        now = self._stamp(touched)
        if now is None:
            return
        node, book = self._book.tree.node(touched.node), self._book
        book.call = touched.call
        if "xattr" in touched.call:
            self._look_at_attributes(touched, node.attributes)
        is_changed = (now.mode, now.modified_ns) != (node.mode, node.modified_ns)
        if touched.has_bytes and (is_over or is_changed):
            book.import_again(touched.node, touched.fd)
        elif is_changed:
            book.emit(Stamped(stamps=(now,)))

    def _look_at_attributes(self, touched: _Touched, known: dict[str, str]) -> None:
        """Write down a node's extended attributes where they have changed."""
        if touched.fd >= 0:
            found = read_attributes(touched.fd)
        else:
            paths = self._book.tree.paths(self._book.tree.node(touched.node))
            found = read_attributes(self._book.full(to_bytes(paths[0]))) if paths else known
        if found != known:
            self._book.emit(Attributed(node=touched.node, attributes=found))

    def _stamp(self, touched: _Touched) -> Stamp | None:
        """Return what a node's stamp is now; None where it has no name by which it could be found."""
        if touched.fd >= 0:
            return stamp(touched.node, os.fstat(touched.fd))
        paths = self._book.tree.paths(self._book.tree.node(touched.node))
        if not paths:
            return None
        try:
            state = os.stat(self._book.full(to_bytes(paths[0])), follow_symlinks=False)
        except OSError:
            return None
        return stamp(touched.node, state)

    def close(self) -> None:
        """Close the descriptors."""
        for touched in self._touched:
            if touched.fd >= 0:
                os.close(touched.fd)
        self._touched = []

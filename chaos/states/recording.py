"""The crash states of a recorded life, found offline: walked through with their digests, or one of them as a model."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from chaos.errors import HarnessError
from chaos.model import PAGE_BYTES, Record
from chaos.states.changes import Change, Wrote
from chaos.states.content import ContentStore
from chaos.states.log import CONTENT, StateAt, read_changes
from chaos.states.tree import Tree, UnknownNodeError

_TORN = "a state torn inside a write needs a file offset strictly inside it"


class Walked(Record, kw_only=True):
    """One crash state on the way through a recording, and the digest of what can be seen in it."""

    state: StateAt
    digest: str


class Recording:
    """One recorded life; keeps its changes in memory, and bytes on disk. Use as a context manager, or close it."""

    def __init__(self, folder: Path) -> None:
        """Open the recording in `folder` and those that it goes on from; HarnessError where one is not whole."""
        head, self.changes, end = read_changes(folder)
        self.num_operations = end.num_operations
        self._base_state = head.state
        self._base: Recording | None = Recording(Path(os.path.normpath(folder / head.base))) if head.base else None
        parent = None if self._base is None else self._base.store
        self.store: ContentStore = ContentStore(folder / CONTENT, parent)
        self._cursor: tuple[Tree, int] | None = None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self.close()

    def close(self) -> None:
        """Close the files of this recording and of those before it."""
        self.store.close()
        if self._base is not None:
            self._base.close()

    @property
    def end(self) -> StateAt:
        """Return the state after the last operation."""
        return StateAt(index=self.num_operations)

    def tears(self, index: int) -> range:
        """Return the file offsets at which SIGKILL can tear operation `index`; empty where it is no such write."""
        change = self._torn_write(index)
        return range(0) if change is None else page_boundaries(change.offset, change.end)

    def odd_tears(self, index: int) -> tuple[int, ...]:
        """Return three file offsets, no page boundaries, inside the write that operation `index` is: its ends, middle.

        Empty where it is no write that can be torn. These are no states of SIGKILL, but of the fault `torn_write`.
        """
        change = self._torn_write(index)
        if change is None:
            return ()
        middle = (change.offset + change.end) // 2 | 1
        tears = (tear for tear in (change.offset + 1, middle, change.end - 1) if change.offset < tear < change.end)
        return tuple(dict.fromkeys(tear for tear in tears if tear % PAGE_BYTES))

    def tree_at(self, state: StateAt) -> Tree:
        """Return the folder at a crash state, to be used freely.

        Asking for states in ascending order costs what lies between them. Raises HarnessError for a state that this
        life does not have, or where the recording contradicts itself.
        """
        if not 0 <= state.index <= self.num_operations:
            raise HarnessError(f"this life has no operation {state.index}", hint="it has fewer; record it again")
        position = self._position(state.index)
        if self._cursor is None or self._cursor[1] > position:
            self._cursor = self._start(), 0
        tree, done = self._cursor
        for change in self.changes[done:position]:
            _apply(tree, change)
        self._cursor = tree, position
        copied = tree.copy()
        if state.tear_offset is not None:
            torn = self._torn_write(state.index)
            if torn is None or not torn.offset < state.tear_offset < torn.end:
                raise HarnessError(_TORN, hint=f"operation {state.index} has none at {state.tear_offset}")
            copied.apply(torn, end=state.tear_offset)
        return copied

    def walk(self, *, has_all_tears: bool = False) -> Iterator[Walked]:
        """Yield every crash state in order with its digest: each prefix, and each write torn at page boundaries.

        Torn at the first, the middle and the last one, or at all of them. One pass; what an operation changed is read
        once.
        """
        tree, position, done = self._start(), 0, 0
        for index in range(self.num_operations + 1):
            end = self._position(index)
            for change in self.changes[position:end]:
                _apply(tree, change, start=done)  # what the torn states had of a write stays
                done = 0
            position = end
            yield Walked(state=StateAt(index=index), digest=tree.state_digest())
            torn = self._torn_write(index)
            if torn is not None:
                for tear in _chosen(page_boundaries(torn.offset, torn.end), has_all_tears=has_all_tears):
                    _apply(tree, torn, start=done, end=tear)
                    done = tear
                    yield Walked(state=StateAt(index=index, tear_offset=tear), digest=tree.state_digest())

    def _start(self) -> Tree:
        """Return the folder as it was when the life began, before the changes with index -1."""
        if self._base is None or self._base_state is None:
            return Tree(self.store)
        tree = self._base.tree_at(self._base_state)
        tree.forget_nameless()
        tree.content = self.store
        return tree

    def _position(self, index: int) -> int:
        """Return how many changes belong to operations before `index`."""
        return bisect_left(self.changes, index, key=lambda change: change.index)

    def _torn_write(self, index: int) -> Wrote | None:
        """Return the write that operation `index` is, if SIGKILL can tear it."""
        position = self._position(index)
        if position < len(self.changes):
            change = self.changes[position]
            if isinstance(change, Wrote) and change.can_tear and change.index == index:
                return change
        return None


def page_boundaries(offset: int, end: int) -> range:
    """Return the multiples of 4096 strictly between two file offsets."""
    return range((offset // PAGE_BYTES + 1) * PAGE_BYTES, end, PAGE_BYTES)


def _chosen(boundaries: range, *, has_all_tears: bool) -> tuple[int, ...]:
    """Return the first, the middle and the last of the boundaries, or all, in order."""
    if has_all_tears or not boundaries:
        return tuple(boundaries)
    return tuple(sorted({boundaries[0], boundaries[len(boundaries) // 2], boundaries[-1]}))


def _apply(tree: Tree, change: Change, *, start: int = 0, end: int | None = None) -> None:
    """Apply a change; HarnessError where it does not fit what came before."""
    try:
        tree.apply(change, start=start, end=end)
    except UnknownNodeError as error:
        message = f"the recording contradicts itself at operation {change.index}: there is no {error}"
        raise HarnessError(
            message, hint="its files were changed, or this is a fault of ours; record the run again"
        ) from error

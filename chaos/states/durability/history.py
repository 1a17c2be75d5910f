"""Follows a recording, and keeps what is not durable yet at the point that it has come to.

What a recording begins with is durable. The rules of all file systems are followed at once: they share what happened
to the files, and differ in what of it is promised to be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from chaos.errors import HarnessError
from chaos.model import PAGE_BYTES, FileSystem
from chaos.states.changes import (
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
from chaos.states.durability.contents import Floor
from chaos.states.durability.names import NOTHING_AFTER, Cell, NameChange, Names
from chaos.states.durability.rules import EVERYTHING, NO_PROMISE, PROMISES, RULES, Promise, Rules
from chaos.states.durability.written import FileLog, num_pages
from chaos.states.log import StateAt
from chaos.states.recording import Recording
from chaos.states.tree import Node, Tree

_CONTENT = (Wrote, Resized, Allocated, Zeroed)


@dataclass(slots=True, kw_only=True)
class View:
    """What is durable by one file system's rules: of names, and of each file's bytes."""

    rules: Rules
    names: Names
    floors: dict[int, Floor] = field(default_factory=dict)


class History:
    """A recording, followed up to right before an operation.

    `tree` is the folder as a process saw it there. `files` holds what happened to each file that was touched,
    `published` the operation that gave a cell what it holds, `written_as` the name that a file had when it was written
    last. Use `advance` to go on; a recording is gone through once.
    """

    def __init__(self, recording: Recording, file_systems: Iterable[FileSystem]) -> None:
        """Begin before the first operation."""
        self.recording = recording
        self.tree: Tree = recording.tree_at(StateAt(index=0))
        self.files: dict[int, FileLog] = {}
        self.published: dict[Cell, int] = {}
        self.written_as: dict[int, str] = {}
        self.views = {name: View(rules=RULES[name], names=Names(order=RULES[name].name_order)) for name in file_systems}
        self._done = sum(change.index < 0 for change in recording.changes)
        self._begun: Wrote | None = None

    def advance(self, index: int) -> bool:
        """Go on to right before operation `index`, which is not before where it is; tell whether anything changed.

        A write that is made durable as it goes (O_SYNC, O_DSYNC) and that is this very operation counts as begun: any
        part of it may be there. Raises HarnessError for a point that was passed.
        """
        changes = self.recording.changes
        if self._done and changes[self._done - 1].index >= index and self._begun is None:
            raise HarnessError(f"operation {index} was passed", hint="this is a fault of ours; please report it")
        done, begun = self._done, self._begun
        while self._done < len(changes) and changes[self._done].index < index:
            change = changes[self._done]
            if self._begun is None:
                self._take(self._done, change)
            else:
                self._keep_written(self._done, self._begun)
                self._begun = None
            self._done += 1
        self._begin(index)
        return (self._done, self._begun) != (done, begun)

    def _begin(self, index: int) -> None:
        """Let a write that is made durable as it goes, and that is operation `index`, be under way."""
        change = self.recording.changes[self._done] if self._done < len(self.recording.changes) else None
        if not isinstance(change, Wrote) or change.durability is Durability.NONE:
            return
        if change.index == index and self._begun is None:
            self._begun = change
            self._take_content(self._done, change)

    def _take(self, position: int, change: Change) -> None:
        """Take one change: first what it does, then what it makes durable."""
        if isinstance(change, _CONTENT):
            self._take_content(position, change)
            if isinstance(change, Wrote) and change.durability is not Durability.NONE:
                self._keep_written(position, change)
            return
        named = self._name_change(position, change)
        if named is not None:
            before = {cell: self._holds(cell) for cell, _ in named.cells}
            self.published.update((cell, change.index) for cell in before)
            for view in self.views.values():
                view.names.add(named, before)
        self.tree.apply(change)
        if isinstance(change, Synced):
            self._sync(position, change)

    # --- bytes --------------------------------------------------------------------------------------

    def _take_content(self, position: int, change: Wrote | Resized | Allocated | Zeroed) -> None:
        """Take a change of a file's bytes or length."""
        log, node = self._file(change.node, position), self.tree.node(change.node)
        old_size = node.extents.size
        self.tree.apply(change)
        log.add(position, change, old_size, node.extents)
        if not isinstance(change, Wrote):
            for view in self.views.values():
                view.names.add_cut(position)
        self.written_as[change.node] = next(iter(self.tree.paths(node)), "")

    def _file(self, number: int, position: int) -> FileLog:
        """Return the log of a file, from the state on that it is in before the change at a position."""
        log = self.files.get(number)
        if log is None:
            log = FileLog.of(number, position - 1, self.tree.node(number).extents, self.tree.content)
            self.files[number] = log
            for view in self.views.values():
                view.floors[number] = Floor(log=log)
        return log

    def _keep_written(self, position: int, change: Wrote) -> None:
        """Take it that a write is durable when it has returned: its pages, and what the file needs to have them."""
        first, end = change.offset // PAGE_BYTES, num_pages(change.end)
        promise = PROMISES["fsync" if change.durability is Durability.ALL else "fdatasync"]
        for view in self.views.values():
            view.floors[change.node].keep(position, first, end)
            self._keep_names(view, self.tree.node(change.node), promise)

    # --- names --------------------------------------------------------------------------------------

    def _holds(self, cell: Cell) -> int | None:
        """Return what a cell holds now."""
        return self.tree.node(cell[0]).entries.get(cell[1])

    def _with_all_below(self, cell: Cell) -> Iterator[Cell]:
        """Yield a cell and all that are below it: a folder that is moved away takes them along."""
        yield cell
        number = self._holds(cell)
        if number is not None:
            for name in list(self.tree.node(number).entries):
                yield from self._with_all_below((number, name))

    def _name_change(self, position: int, change: Change) -> NameChange | None:
        """Return a change of names as what its cells hold afterwards; None for any other change, or one of nothing."""
        match change:
            case Made(parent=int() as parent):
                cells: tuple[tuple[Cell, int | None], ...] = (((parent, change.name), change.node),)
            case Linked():
                cells = (((change.parent, change.name), change.node),)
            case Unlinked():
                cells = tuple((cell, None) for cell in self._with_all_below((change.parent, change.name)))
            case Renamed():
                old, new = (change.parent, change.name), (change.new_parent, change.new_name)
                moved, replaced = self._holds(old), self._holds(new)
                if moved == replaced:
                    return None
                cells = ((old, replaced if change.is_exchange else None), (new, moved))
            case _:
                return None
        about = {node for cell, after in cells for node in (after, self._holds(cell)) if node is not None}
        return NameChange(position=position, cells=cells, nodes=frozenset(about), is_creation=isinstance(change, Made))

    # --- what is made durable -------------------------------------------------------------------------

    def _sync(self, position: int, change: Synced) -> None:
        """Take it that a call has made something durable, or has failed to."""
        if change.call in EVERYTHING:
            for view in self.views.values():
                if change.has_failed:
                    for floor in view.floors.values():
                        floor.spoil()
                elif view.rules.sync_waits:
                    self._keep_everything(view, position)
        elif change.node is not None:
            promise = PROMISES.get(change.call, NO_PROMISE)
            node = self.tree.node(change.node)
            for view in self.views.values():
                self._keep(view, node, promise, position, has_failed=change.has_failed)
        self._forget_durable()

    def _keep_everything(self, view: View, position: int) -> None:
        """Take it that all that was done is durable."""
        view.names.keep_all()
        for floor in view.floors.values():
            floor.keep(position)

    def _keep(self, view: View, node: Node, promise: Promise, position: int, *, has_failed: bool) -> None:
        """Take it that what a call promises of a node is durable; after a failure, that its pages are spoilt."""
        floor = view.floors.get(node.number)
        if has_failed:
            if floor is not None and promise.data:
                floor.spoil()
            return
        if floor is not None and promise.data:
            floor.keep(position)
        if node.kind is NodeKind.FOLDER and promise.entries:
            view.names.keep_entries(node.number)
        self._keep_names(view, node, promise)

    def _keep_names(self, view: View, node: Node, promise: Promise) -> None:
        """Take it that the names of a node are durable, as far as that is promised."""
        if view.rules.fsync_keeps_names and (promise.names or promise.creation):
            log = self.files.get(node.number)
            cuts = [event.position for event in log.events if event.is_metadata] if log is not None else []
            upto = max(cuts, default=NOTHING_AFTER)
            view.names.keep_of_node(node.number, only_creation=not promise.names, upto=upto)

    def _forget_durable(self) -> None:
        """Drop what can not come out otherwise any more by any file system's rules."""
        for view in self.views.values():
            view.names.forget_durable()
        for number in list(self.files):
            if all(view.floors[number].is_settled for view in self.views.values()):
                del self.files[number]
                for view in self.views.values():
                    del view.floors[number]

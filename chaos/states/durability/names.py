"""The names that a loss of power may leave: which of the changes of names count, by the order that the rules say.

A cell is one name in one folder; each change of names gives one or two cells another content. Without a loss, a cell
has what the last change gave it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from chaos.states.durability.rules import NameOrder

Cell = tuple[int, str]
Cells = Mapping[Cell, int | None]
NOTHING_AFTER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class NameChange:
    """One change of names: what its cells hold afterwards, and the nodes that it is about."""

    position: int
    cells: tuple[tuple[Cell, int | None], ...]
    nodes: frozenset[int]
    is_creation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NameState:
    """One outcome for all cells that could have come out otherwise; `upto`: changes after it are lost, but logged ones.

    `upto` is None where every cell came out by itself.
    """

    cells: Cells
    upto: int | None


@dataclass(slots=True, kw_only=True)
class Names:
    """What is known of the cells by one file system's rules; `before` holds what cells had when the log began.

    `cuts` are the positions of changes of files' metadata, which have a place in the same order.
    """

    order: NameOrder
    before: dict[Cell, int | None] = field(default_factory=dict)
    changes: list[NameChange] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    durable_upto: int = NOTHING_AFTER
    logged: set[int] = field(default_factory=set)
    floors: dict[Cell, int] = field(default_factory=dict)

    def add(self, change: NameChange, before: Mapping[Cell, int | None]) -> None:
        """Take a change; `before` is what its cells held."""
        for cell, _ in change.cells:
            self.before.setdefault(cell, before.get(cell))
        self.changes.append(change)

    def add_cut(self, position: int) -> None:
        """Take a change of a file's metadata: it has its place in the order of the names."""
        self.cuts.append(position)

    # --- what becomes durable -----------------------------------------------------------------------

    def keep_all(self) -> None:
        """Take it that every change so far is durable."""
        positions = [*(change.position for change in self.changes), *self.cuts]
        self.durable_upto = max([self.durable_upto, *positions])
        for change in self.changes:
            self.floors.update((cell, change.position) for cell, _ in change.cells)

    def keep_of_node(self, node: int, *, only_creation: bool, upto: int = NOTHING_AFTER) -> None:
        """Take it that the names of a node are durable, or the one it was made under; `upto`: its last other change."""
        mine = [c for c in self.changes if node in c.nodes and (c.is_creation or not only_creation)]
        self._keep(mine, upto)
        for change in mine:
            self.floors.update((cell, change.position) for cell, _ in change.cells)

    def keep_entries(self, folder: int) -> None:
        """Take it that the names in a folder are durable."""
        self._keep([c for c in self.changes if any(cell[0] == folder for cell, _ in c.cells)], NOTHING_AFTER)
        for change in self.changes:
            for cell, _ in change.cells:
                if cell[0] == folder:
                    self.floors[cell] = change.position

    def _keep(self, mine: list[NameChange], upto: int) -> None:
        """Keep changes by the order that holds: all before the last of them, or them and what they rest on."""
        if self.order is NameOrder.PREFIX:
            self.durable_upto = max(self.durable_upto, upto, *(c.position for c in mine), NOTHING_AFTER)
        elif self.order is NameOrder.LOGGED:
            self.logged |= self._with_what_they_rest_on(mine)

    def _with_what_they_rest_on(self, mine: list[NameChange]) -> set[int]:
        """Return the positions of changes and of all earlier ones on the same cells, or that made their folders."""
        kept = {change.position for change in mine}
        wanted = list(mine)
        while wanted:
            change = wanted.pop()
            cells = {cell for cell, _ in change.cells}
            folders = {parent for parent, _ in cells}
            for other in self.changes:
                if other.position < change.position and other.position not in kept:
                    is_below = any(cell in cells for cell, _ in other.cells)
                    is_maker = other.is_creation and bool(other.nodes & folders)
                    if is_below or is_maker:
                        kept.add(other.position)
                        wanted.append(other)
        return kept

    # --- what may be left -----------------------------------------------------------------------------

    def states(self) -> Iterator[NameState]:
        """Yield the outcomes, each once: everything, nothing, one thing alone, all but one, then all the others."""
        seen = set()
        for state in self._states():
            num_cuts = 0 if state.upto is None else sum(cut <= state.upto for cut in self.cuts)
            key = frozenset(state.cells.items()), num_cuts
            if key not in seen:
                seen.add(key)
                yield state

    def count(self) -> int:
        """Return how many outcomes there are."""
        if self.order is NameOrder.FREE:
            return math.prod(len(values) for values in self._open_cells().values())
        return sum(1 for _ in self.states())

    def _states(self) -> Iterator[NameState]:
        """Yield the outcomes, some more than once."""
        if self.order is NameOrder.FREE:
            yield from (NameState(cells=cells, upto=None) for cells in self._free_states())
            return
        ends = self._ends()
        for end in dict.fromkeys([ends[-1], ends[0], *reversed(ends)]):
            yield NameState(cells=self._cells_at(end), upto=end)

    def forget_durable(self) -> None:
        """Drop the changes that can not come out otherwise any more, and the cells that have no others."""
        kept: list[NameChange] = []
        open_cells: set[Cell] = set()
        self.cuts = [cut for cut in self.cuts if cut > self.durable_upto]
        for change in self.changes:
            if self._is_settled(change) and all(cell not in open_cells for cell, _ in change.cells):
                self.before.update(change.cells)
            else:
                kept.append(change)
                open_cells |= {cell for cell, _ in change.cells}
        if len(kept) < len(self.changes):
            self.changes = kept
            self.before = {cell: node for cell, node in self.before.items() if cell in open_cells}
            self.floors = {cell: position for cell, position in self.floors.items() if cell in open_cells}
            self.logged &= {change.position for change in kept}

    def _is_settled(self, change: NameChange) -> bool:
        """Tell whether a change is durable, and nothing older can come back."""
        if self.order is NameOrder.FREE:
            return all(change.position <= self.floors.get(cell, NOTHING_AFTER) for cell, _ in change.cells)
        return change.position <= self.durable_upto

    def _ends(self) -> list[int]:
        """Return the positions after which nothing may have come to the disk, in order."""
        later = sorted({*(change.position for change in self.changes), *self.cuts})
        return [self.durable_upto, *(position for position in later if position > self.durable_upto)]

    def _cells_at(self, end: int) -> dict[Cell, int | None]:
        """Return what the cells hold with the changes up to a position, and the logged ones."""
        cells = dict(self.before)
        for change in self.changes:
            if change.position <= end or change.position in self.logged:
                cells.update(change.cells)
        return cells

    def _open_cells(self) -> dict[Cell, list[int | None]]:
        """Return what each cell may hold, the oldest first: what it had when it became durable, or anything since."""
        values: dict[Cell, list[int | None]] = {cell: [node] for cell, node in self.before.items()}
        for change in self.changes:
            for cell, node in change.cells:
                if change.position <= self.floors.get(cell, NOTHING_AFTER):
                    values[cell] = [node]
                elif node not in values[cell]:
                    values[cell].append(node)
                else:  # the newest last
                    values[cell].remove(node)
                    values[cell].append(node)
        return values

    def possible(self, cell: Cell) -> list[int | None] | None:
        """Return what a cell may hold where every cell is free (None: it never changed)."""
        return self._open_cells().get(cell)

    def _free_states(self) -> Iterator[dict[Cell, int | None]]:
        """Yield outcomes of cells that are free of each other: all new, all old, all gone that can be, then one apart.

        What was given a name comes before what lost one: a temporary name that is still there hurts nobody.
        """
        values = self._open_cells()
        newest = {cell: options[-1] for cell, options in values.items()}
        oldest = {cell: options[0] for cell, options in values.items()}
        yield newest
        yield oldest
        yield {cell: None if None in options else options[-1] for cell, options in values.items()}
        for cell in sorted(values, key=lambda cell: newest[cell] is None):
            for node in values[cell]:
                yield {**newest, cell: node}
                yield {**oldest, cell: node}
        for chosen in itertools.product(*values.values()):
            yield dict(zip(values, chosen, strict=True))

"""Mutants of the names: their order, what an fsync brings along, what is free."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from chaos.states.durability import names, surviving
from chaos.states.durability.history import History
from chaos.states.durability.names import Names

from .mutants import BTRFS, EXT4, POSIX, Apply, Mutant, nothing, replaced


def _ends_without_middle(self: Names) -> list[int]:
    """Return nothing and everything alone."""
    return [
        self.durable_upto,
        *[change.position for change in self.changes if change.position > self.durable_upto][-1:],
    ]


def _without(part: str) -> Apply:
    """Return what lets the logged changes bring along no others on their cells, or none that made their folders."""
    original = Names._with_what_they_rest_on

    def _closure(self: Names, mine: list[names.NameChange]) -> set[int]:
        """Hide what the other changes share with these."""
        kept = {change.position for change in mine}
        hidden = [
            change
            if change.position in kept
            else dataclasses.replace(change, **({"cells": ()} if part == "cells" else {"is_creation": False}))
            for change in self.changes
        ]
        return original(dataclasses.replace(self, changes=hidden), mine)

    return replaced(Names, "_with_what_they_rest_on", _closure)


def _forgets_what_is_durable(self: Names) -> None:
    """Forget changes that are durable, also where an older one on the same name is not."""
    for change in [change for change in self.changes if self._is_settled(change)]:
        self.changes.remove(change)
        self.before.update(change.cells)


def _keep_entries_alone(self: Names, folder: int) -> None:
    """Keep the names in a folder where they are free, and nowhere else."""
    for change in self.changes:
        self.floors.update({cell: change.position for cell, _ in change.cells if cell[0] == folder})


def _halves(self: Names) -> Iterator[dict[names.Cell, int | None]]:
    """Let all free cells be new or old together."""
    values = self._open_cells()
    yield {cell: options[-1] for cell, options in values.items()}
    yield {cell: options[0] for cell, options in values.items()}


def _cells_in_order_alone(self: Names, end: int) -> dict[names.Cell, int | None]:
    """Leave the logged changes out."""
    cells = dict(self.before)
    for change in self.changes:
        if change.position <= end:
            cells.update(change.cells)
    return cells


_keep_of_node = Names.keep_of_node


def _keep_of_node_without_cuts(self: Names, node: int, *, only_creation: bool, upto: int = -1) -> None:
    """Keep the names of a node, and not its own changes of metadata."""
    del upto
    _keep_of_node(self, node, only_creation=only_creation)


OF_NAMES = (
    Mutant(
        "only all or nothing of the order",
        replaced(Names, "_ends", _ends_without_middle),
        ("rotation by rename", "file"),
        EXT4,
    ),
    Mutant("cuts have no place in the order", replaced(Names, "add_cut", nothing), "a cut without any name", EXT4),
    Mutant("cuts in the order", replaced(Names, "add_cut", nothing), ("in place", "nothing"), BTRFS),
    Mutant(
        "fsync of what was cut keeps no order",
        replaced(Names, "keep_of_node", _keep_of_node_without_cuts),
        "fsync of a cut file brings earlier names along",
        EXT4,
    ),
    Mutant("sync keeps no names", replaced(Names, "keep_all", nothing), ("replace", "sync"), EXT4),
    Mutant(
        "a folder's fsync keeps no order",
        replaced(Names, "keep_entries", _keep_entries_alone),
        ("replace", "folder"),
        EXT4,
    ),
    Mutant(
        "a folder's fsync logs nothing",
        replaced(Names, "keep_entries", _keep_entries_alone),
        ("replace", "folder"),
        BTRFS,
    ),
    Mutant(
        "a folder's fsync keeps no name of its own",
        replaced(Names, "keep_of_node", nothing),
        "a folder's own name",
        EXT4,
    ),
    Mutant("nothing is logged", replaced(Names, "_cells_at", _cells_in_order_alone), ("direct", "file"), BTRFS),
    Mutant("logged without earlier ones on its names", _without("cells"), ("rotation late", "file"), BTRFS),
    Mutant("logged without its folders", _without("makers"), ("in folder", "file"), BTRFS),
    Mutant("free names together", replaced(Names, "_free_states", _halves), ("rotation by unlink", "file"), POSIX),
    Mutant(
        "forgets what is durable at once",
        replaced(Names, "forget_durable", _forgets_what_is_durable),
        "a name that is durable again, while half of its rename is not",
        POSIX,
    ),
    Mutant(
        "a folder goes away without what is in it",
        replaced(History, "_with_all_below", lambda _, cell: iter([cell])),
        "a folder that is moved away with all in it",
        POSIX,
    ),
    Mutant(
        "a folder under two names",
        replaced(surviving, "_drop_second_names_of_folders", nothing),
        "a folder that kept both names",
        POSIX,
    ),
)

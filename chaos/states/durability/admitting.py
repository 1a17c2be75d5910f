"""Is a real folder one of the states that a loss of power may leave? Decided, not searched for.

Names and lengths and every page are compared with what may be there; permissions and times are not.
"""

# ruff: noqa: PTH116, PTH118 - names are bytes

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.errors import InconclusiveError
from chaos.model import FileSystem
from chaos.states.changes import ROOT, NodeKind, to_bytes, to_text
from chaos.states.durability.contents import Floor, Outcomes
from chaos.states.durability.history import History, View
from chaos.states.durability.names import NameState
from chaos.states.durability.rules import NameOrder
from chaos.states.reading import entries, kind_of, link_text
from chaos.states.recording import Recording

_MOST_WAYS: Final = 10_000
_FEWER: Final = "ask at a point with less that is not durable"


def admits(recording: Recording, index: int, file_system: FileSystem, folder: Path) -> str:
    """Say why the real `folder` is not what a loss of power before operation `index` may leave; nothing if it is.

    Raises OSError where the folder cannot be read, HarnessError where the recording has no such operation.
    """
    history = History(recording, (file_system,))
    history.advance(index)
    return admits_at(history, file_system, folder)


def admits_at(history: History, file_system: FileSystem, folder: Path) -> str:
    """Say the same for the point that a history has come to."""
    view = history.views[file_system]
    asked = _Asked(history, view, os.fsencode(folder))
    if view.names.order is NameOrder.FREE:
        return asked.complaint(None)
    reasons = []
    for state in view.names.states():
        complaint = asked.complaint(state)
        if not complaint:
            return ""
        reasons.append(f"with the changes up to {state.upto}: {complaint}")
    return "; or ".join(reasons)


Place = tuple[int, str, bytes]
"""A folder's node, a name in it, and the path of both."""


@dataclass(slots=True)
class _Way:
    """A way to read the real folder: the names still to look at, the folders met, and what files hold by it."""

    todo: list[Place]
    seen: set[int]
    held: dict[int, bytes]

    def copy(self) -> _Way:
        """Return the same, to be followed apart."""
        return _Way(self.todo.copy(), self.seen.copy(), self.held.copy())


class _Asked:
    """One comparison of a real folder with the outcomes for names and files.

    Names are gone through as they are seen: in order, what is in a folder after it. Where a name may lead to several
    nodes, each is tried; a node holds one content under all its names, and a folder is seen under the first alone.
    """

    def __init__(self, history: History, view: View, out: bytes) -> None:
        """Compare the folder at `out`."""
        self._tree = history.tree
        self._view = view
        self._out = out
        self._bytes: dict[bytes, bytes] = {}

    def complaint(self, state: NameState | None) -> str:
        """Return what cannot be so, nothing if all can; with `state` None each name may be by itself.

        Raises InconclusiveError where there are too many ways to try.
        """
        complaints: list[str] = []
        ways = [_Way(self._places(ROOT, b"", state), {ROOT}, {})]
        while ways:
            if len(complaints) > _MOST_WAYS:
                raise InconclusiveError(f"there are more than {_MOST_WAYS:,} ways to read {self._out!r}", hint=_FEWER)
            complaint = self._follow(ways.pop(), ways, state)
            if not complaint:
                return ""
            complaints.append(complaint)
        return complaints[0]

    def _follow(self, way: _Way, ways: list[_Way], state: NameState | None) -> str:
        """Follow one way to its end, put those that fork off it into `ways`, and return what cannot be so."""
        while way.todo:
            place = way.todo.pop()
            complaint, fitting = "", []
            for node in self._options(place, state):
                about = self._about(node, place, way, state)
                if about:
                    complaint = about
                else:
                    fitting.append(node)
            if not fitting:
                return complaint
            for node in fitting[:-1]:
                ways.append(way.copy())
                self._go(ways[-1], node, place, state)
            self._go(way, fitting[-1], place, state)
        return ""

    def _go(self, way: _Way, node: int | None, place: Place, state: NameState | None) -> None:
        """Take it that a name leads to a node."""
        kind = None if node is None else self._tree.node(node).kind
        if node is not None and kind is NodeKind.FILE:
            way.held[node] = self._read(place[2])
        elif node is not None and kind is NodeKind.FOLDER and node not in way.seen:
            way.seen.add(node)
            way.todo += self._places(node, place[2], state)

    def _places(self, folder: int, path: bytes, state: NameState | None) -> list[Place]:
        """Return the names that a folder has, had, or may have, the last first."""
        cells = self._view.names.before if state is None else state.cells
        real = {to_text(name) for name in entries(os.path.join(self._out, path))}
        known = {*self._tree.node(folder).entries, *(name for parent, name in cells if parent == folder)}
        return [(folder, name, os.path.join(path, to_bytes(name))) for name in sorted(real | known, reverse=True)]

    def _options(self, place: Place, state: NameState | None) -> Iterable[int | None]:
        """Return what a name may lead to."""
        cell = place[:2]
        now = self._tree.node(cell[0]).entries.get(cell[1])
        if state is not None:
            return (state.cells.get(cell, now),)
        possible = self._view.names.possible(cell)
        return (now,) if possible is None else possible

    def _about(self, number: int | None, place: Place, way: _Way, state: NameState | None) -> str:
        """Return why a name cannot lead to a node, nothing if it can."""
        text, is_there = to_text(place[2]), os.path.lexists(os.path.join(self._out, place[2]))
        if number is None or number in way.seen:
            return f"{text} is there" if is_there else ""
        return self._about_node(number, place[2], way, state) if is_there else f"{text} is missing"

    def _about_node(self, number: int, path: bytes, way: _Way, state: NameState | None) -> str:
        """Return why what is at a path cannot be a node, nothing if it can."""
        node, full, text = self._tree.node(number), os.path.join(self._out, path), to_text(path)
        if kind_of(os.stat(full, follow_symlinks=False)) is not node.kind:
            return f"{text} is no {node.kind}"
        if node.kind is NodeKind.SYMLINK and link_text(full) != node.text:
            return f"{text} leads to {link_text(full)}"
        if node.kind is NodeKind.FILE:
            if way.held.get(number, self._read(path)) != self._read(path):
                return f"{text} and another name of the same file hold different bytes"
            if number not in way.held and not self._may_hold(number, path, state):
                return f"{text} holds {len(self._read(path)):,} bytes that it cannot hold"
        return ""

    def _may_hold(self, number: int, path: bytes, state: NameState | None) -> bool:
        """Tell whether a file may hold what is in it."""
        data = self._read(path)
        floor = self._view.floors.get(number)
        if floor is None:
            extents = self._tree.node(number).extents
            return data == extents.read(0, extents.size, self._tree.content)
        return any(outcomes.allow(data) for outcomes in _outcomes(floor, state))

    def _read(self, path: bytes) -> bytes:
        """Return what a file holds, read once."""
        if path not in self._bytes:
            with open(os.path.join(self._out, path), "rb") as file:  # noqa: PTH123 - names are bytes
                self._bytes[path] = file.read()
        return self._bytes[path]


def _outcomes(floor: Floor, state: NameState | None) -> list[Outcomes]:
    """Return what may be left of a file, with one limit for its cuts, or with any."""
    limits = floor.limits() if state is None or state.upto is None else [state.upto]
    return [floor.outcomes(limit) for limit in limits]

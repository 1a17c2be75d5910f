"""Is a real folder one of the states that a loss of power may leave? Decided, not searched for.

Names and lengths and every page are compared with what may be there; permissions and times are not.
"""

# ruff: noqa: PTH116, PTH118 - names are bytes

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from chaos.model import FileSystem
from chaos.states.changes import ROOT, NodeKind, to_bytes, to_text
from chaos.states.durability.contents import Floor, Outcomes
from chaos.states.durability.history import History, View
from chaos.states.durability.names import NameState
from chaos.states.durability.rules import NameOrder
from chaos.states.reading import entries, kind_of, link_text
from chaos.states.recording import Recording


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
        return "; ".join(asked.complaints(ROOT, b"", None))
    reasons = []
    for state in view.names.states():
        complaint = next(asked.complaints(ROOT, b"", state), None)
        if complaint is None:
            return ""
        reasons.append(f"with the changes up to {state.upto}: {complaint}")
    return "; or ".join(reasons)


class _Asked:
    """One comparison of a real folder with the outcomes for names and files."""

    def __init__(self, history: History, view: View, out: bytes) -> None:
        """Compare the folder at `out`."""
        self._tree = history.tree
        self._view = view
        self._out = out
        self._bytes: dict[bytes, bytes] = {}

    def complaints(self, folder: int, path: bytes, state: NameState | None) -> Iterator[str]:
        """Yield what of a folder cannot be so; with `state` None each name may be by itself."""
        real = {to_text(name) for name in entries(os.path.join(self._out, path))}
        for name in sorted(real | self._known(folder, state)):
            full = os.path.join(path, to_bytes(name))
            options = self._options(folder, name, state)
            if name not in real:
                if None not in options:
                    yield f"{to_text(full)} is missing"
                continue
            nodes = [node for node in options if node is not None]
            if not nodes:
                yield f"{to_text(full)} is there"
                continue
            found = [next(self._about(node, full, state), None) for node in nodes]
            if None not in found:
                yield found[-1] or ""

    def _known(self, folder: int, state: NameState | None) -> set[str]:
        """Return the names that a folder may have, or has."""
        cells = self._view.names.before if state is None else state.cells
        return {*self._tree.node(folder).entries, *(name for parent, name in cells if parent == folder)}

    def _options(self, folder: int, name: str, state: NameState | None) -> Iterable[int | None]:
        """Return what a name may lead to."""
        now = self._tree.node(folder).entries.get(name)
        if state is not None:
            return (state.cells.get((folder, name), now),)
        possible = self._view.names.possible((folder, name))
        return (now,) if possible is None else possible

    def _about(self, number: int, path: bytes, state: NameState | None) -> Iterator[str]:
        """Yield what of one node cannot be so."""
        node, full = self._tree.node(number), os.path.join(self._out, path)
        if kind_of(os.stat(full, follow_symlinks=False)) is not node.kind:
            yield f"{to_text(path)} is no {node.kind}"
        elif node.kind is NodeKind.FOLDER:
            yield from self.complaints(number, path, state)
        elif node.kind is NodeKind.SYMLINK and link_text(full) != node.text:
            yield f"{to_text(path)} leads to {link_text(full)}"
        elif node.kind is NodeKind.FILE and not self._may_hold(number, full, state):
            size = len(self._read(full))
            yield f"{to_text(path)} holds {size:,} bytes that it cannot hold"

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
            with open(path, "rb") as file:  # noqa: PTH123 - names are bytes
                self._bytes[path] = file.read()
        return self._bytes[path]


def _outcomes(floor: Floor, state: NameState | None) -> list[Outcomes]:
    """Return what may be left of a file, with one limit for its cuts, or with any."""
    limits = floor.limits() if state is None or state.upto is None else [state.upto]
    return [floor.outcomes(limit) for limit in limits]

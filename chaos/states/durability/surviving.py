"""A state that a loss of power leaves, as a model of the folder that can be built."""

from __future__ import annotations

from chaos.model import Loss, SurvivingFile, SurvivingName
from chaos.states.changes import BEFORE_ALL, ROOT, NodeKind
from chaos.states.extents import Extents
from chaos.states.log import StateAt
from chaos.states.recording import Recording
from chaos.states.tree import Tree


def tree_after(recording: Recording, index: int, loss: Loss) -> Tree:
    """Return the folder that is left when the power goes right before operation `index`, and `loss` is what survives.

    Raises HarnessError where the recording has no such operation.
    """
    wanted = {(file.node, span.position) for file in loss.files for span in file.ranges}
    moments = _moments(recording, wanted)
    tree = recording.tree_at(StateAt(index=index))
    for file in loss.files:
        tree.put_bytes(file.node, _bytes_of(file, moments))
    stale = [name for name in loss.names if tree.node(name.parent).entries.get(name.name) != name.node]
    for name in loss.names:
        tree.put_name(name.parent, name.name, name.node)
    _part_stale_names(tree, stale)
    _drop_second_names_of_folders(tree)
    return tree


def _moments(recording: Recording, wanted: set[tuple[int, int]]) -> dict[tuple[int, int], Extents]:
    """Return the bytes of files at moments: after a change, or where the recording began."""
    tree = recording.tree_at(StateAt(index=0))
    found: dict[tuple[int, int], Extents] = {}
    by_position: dict[int, list[int]] = {}
    for node, position in wanted:
        by_position.setdefault(position, []).append(node)
    last = max(by_position, default=BEFORE_ALL)
    for position, change in enumerate((None, *recording.changes[: last + 1]), start=BEFORE_ALL):
        if change is not None and change.index > BEFORE_ALL:
            tree.apply(change)
        for node in by_position.get(position, ()):
            found[node, position] = tree.node(node).extents.copy() if node in tree.nodes else Extents()
    return found


def _bytes_of(file: SurvivingFile, moments: dict[tuple[int, int], Extents]) -> Extents:
    """Return the bytes of a file put together from several moments."""
    extents = Extents()
    for span in file.ranges:
        extents.take(moments[file.node, span.position], span.start, min(span.end, file.size_bytes))
    extents.resize(file.size_bytes)
    return extents


def _part_stale_names(tree: Tree, stale: list[SurvivingName]) -> None:
    """Let a file that kept the name from before a rename beside its new one be two files of the same bytes.

    They would be one, on a file system that splits renames. Then whoever opens the stale temporary file to write the
    next checkpoint empties the published one: that hazard is left out, since nearly every saver has it.
    """
    for name in stale:
        node = tree.nodes.get(name.node) if name.node is not None else None
        if node is not None and node.kind is NodeKind.FILE and len(node.names) > 1:
            tree.put_name(name.parent, name.name, tree.copy_of(node))


def _drop_second_names_of_folders(tree: Tree, folder: int = ROOT, seen: set[int] | None = None) -> None:
    """Leave a folder only the first of its names: where names are free, a moved one may have kept both.

    Nothing that repairs a file system leaves it so; and none may lead into a folder from below itself.
    """
    seen = {ROOT} if seen is None else seen
    for name, number in sorted(tree.nodes[folder].entries.items()):
        if tree.nodes[number].kind is NodeKind.FOLDER:
            if number in seen:
                tree.put_name(folder, name, None)
            else:
                seen.add(number)
                _drop_second_names_of_folders(tree, number, seen)

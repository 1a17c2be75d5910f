"""What `chaos diff` is asked for: two checkpoints compared in one pass, gathered by component."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from chaos.checkpoints.components import component_of, rank_of
from chaos.checkpoints.examine import size_of
from chaos.checkpoints.hostile import refusing_hostile
from chaos.checkpoints.leaves import clean_name
from chaos.checkpoints.pairs import Pair, pairs
from chaos.checkpoints.readings import missing_members, readings
from chaos.checkpoints.sides import Side
from chaos.checkpoints.tally import Tally
from chaos.errors import UsageError
from chaos.model import CheckpointDifference


def diff(left: Path, right: Path, ignored: Sequence[str] = (), limit: int = 5) -> CheckpointDifference:
    """Return how two whole checkpoints differ, without the leaves whose names match one of the globs in `ignored`.

    At most `limit` differing leaves of each component are shown. Raises UsageError when a side is not whole, when a
    pickle asks for what no checkpoint needs, and for a file against a folder.
    """
    tallies: dict[str, Tally] = {}
    left_out: set[str] = set()
    matching: set[str] = set()
    members: set[str] = set()

    def is_wanted(name: str) -> bool:
        """Tell whether no glob matches; count those that one does, and keep which globs do."""
        found = {glob for glob in ignored if fnmatchcase(name, glob)}
        if found:
            matching.update(found)
            left_out.add(name)
        return not found

    with refusing_hostile():
        sides = _sides(left, right)
        for pair in pairs(*sides, is_wanted):
            component = _component(pair)
            tallies.setdefault(component, Tally(component)).add(pair)
            members.add(pair.member)
    found = [tallies[component] for component in sorted(tallies, key=rank_of)]
    return CheckpointDifference(
        equal=all(tally.is_equal for tally in found),
        a=clean_name(str(left)),
        b=clean_name(str(right)),
        a_bytes=size_of(left),
        b_bytes=size_of(right),
        components=tuple(tally.component(limit) for tally in found),
        readings=(*readings(found), *missing_members(*(members & side.members.keys() for side in sides))),
        ignored=len(left_out),
        unmatched=tuple(glob for glob in dict.fromkeys(ignored) if glob not in matching),
    )


def _sides(left: Path, right: Path) -> tuple[Side, Side]:
    """Return both sides; raises UsageError when one is a file and the other a folder."""
    one, two = Side(left, follows_links=True), Side(right, follows_links=True)
    if one.is_folder != two.is_folder:
        folder, file = (left, right) if one.is_folder else (right, left)
        raise UsageError(
            f"{folder} is a folder and {file} is a file: their leaves have no names in common",
            hint="Give two files or two folders, such as the file in the folder that is meant.",
        )
    return one, two


def _component(pair: Pair) -> str:
    """Return the component of a pair."""
    is_single = not pair.is_tensor or pair.elements == 1
    return component_of(
        pair.name,
        is_tensor=pair.is_tensor,
        is_float=pair.is_float,
        elements=1 if is_single else pair.elements,
        member=pair.member,
    )

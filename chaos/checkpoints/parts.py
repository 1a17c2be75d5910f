"""The parts that a checkpoint is made of, as its names show them: what may be reset by itself.

Of a folder with several members they are the members. Of a file they are the keys at the top, below those that all
names share; an optimizer's state counts by its own keys (`optimizer.state.*.exp_avg`), over all parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from chaos.checkpoints.members import Member, members_of

_NUMBER: Final = re.compile(r"-?\d+$|^'-?\d+'$")
_SEPARATOR: Final = re.compile(r"[./]")
_STATE: Final = "state"
_MOST_SHARED: Final = 3


def members_as_parts(path: Path) -> tuple[Member, ...]:
    """Return the members of a folder that has several; none of anything else. Raises OSError, UnjudgeableError."""
    members = members_of(path) if path.is_dir() else []
    return tuple(members) if len(members) > 1 else ()


def part_by_name(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """Return the part that each leaf of one file belongs to; `prefix` is what all names begin with in a folder."""
    cut = len(f"{prefix}/") if prefix else 0
    pieces = {name: _SEPARATOR.split(name[cut:]) for name in names}
    shared: list[str] = []
    while len(shared) < _MOST_SHARED and pieces and all(len(each) > 1 for each in pieces.values()):
        heads = {each[0] for each in pieces.values()}
        if len(heads) > 1:
            break
        shared += heads
        pieces = {name: each[1:] for name, each in pieces.items()}
    return {name: _part(shared, each) for name, each in pieces.items()}


def _part(shared: list[str], pieces: list[str]) -> str:
    """Return the part of one leaf, given what stands before its pieces in all names."""
    head, *rest = pieces
    if rest[:1] == [_STATE] and len(rest) > 2 and _NUMBER.search(rest[1]):  # noqa: PLR2004 - state, parameter, key
        return ".".join((*shared, head, _STATE, "*", rest[2]))
    if head == _STATE and len(rest) > 1 and _NUMBER.search(rest[0]):
        return ".".join((*shared, _STATE, "*", rest[1]))
    if len(rest) and any(piece in {_STATE, "param_groups"} for piece in rest[:1]):
        return ".".join((*shared, head, rest[0]))
    return ".".join((*shared, head))

"""`torn_write`: a kill inside a write, at any byte of it.

Stands for: a kill while a write goes to a file system or through a kernel that does not copy by whole pages, such as
network and user-space file systems, which pass on what fits into a request; a write that a signal interrupted right
before the kill.

Does not stand for: what SIGKILL does on ext4, xfs, btrfs and tmpfs, which tear at page boundaries only (`kill`); pages
that reach the disk out of order (`power_loss`).

It strikes by carrying out the write up to the byte, not answering it, and then killing everything. Evidence: that of a
kill, and the number of bytes that were written.
"""

from __future__ import annotations

import random
from typing import Final

from chaos.model import CrashPoint, FaultKind, Operation, PlannablePoint, SaveProfile
from chaos.planners.kinds import Choice, FaultPlan


def can_tear(point: PlannablePoint, _resumed_from: SaveProfile | None) -> bool:
    """Tell whether a point is a write with two bytes at least: there is a place inside it."""
    return point.end - point.start > 1


def at_any_byte(point: PlannablePoint, rng: random.Random) -> int:
    """Draw a file offset strictly inside a write."""
    return rng.randrange(point.start + 1, point.end)


def within(point: CrashPoint, operation: Operation) -> int | None:
    """Return the file offset at which a write is cut, None where it has no inside.

    Sizes may differ a little between runs: an offset outside of this write becomes the nearest one inside it.
    """
    if point.tear_offset is None or operation.size_bytes <= 1:
        return None
    last = operation.offset + operation.size_bytes - 1
    return min(max(point.tear_offset, operation.offset + 1), last)


PLAN: Final = FaultPlan(
    kind=FaultKind.TORN_WRITE,
    can_strike=can_tear,
    choose=lambda point, rng, _ordinal: Choice(tear_offset=at_any_byte(point, rng)),
)

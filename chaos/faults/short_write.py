"""`short_write`: one write takes only a part of its bytes, and says so by its count.

Stands for: what write(2) allows: "the number of bytes written may be less than count", on a disk that is nearly full,
over a network file system, after a signal, above 2 GB. It is no error: the caller has to write the rest.

Does not stand for: a write that claims more than it did (`bit_flip` damages files without a word), an error.

It strikes by carrying the write out up to a byte and answering the count; the life goes on, and a target that writes
the rest ends as if nothing had been. So it is not drawn for recoveries: no life would come after it. Evidence: that the
count was answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from chaos.address import DATA_WRITES
from chaos.faults.answers import Answer
from chaos.faults.torn_write import at_any_byte, can_tear, within
from chaos.model import CrashPoint, FaultKind, Operation, Phase, PlannablePoint, SaveProfile
from chaos.planners.kinds import Choice, FaultPlan


def answer_to(
    point: CrashPoint, operation: Operation, *, is_first: bool, is_there: Callable[[], bool]
) -> Answer | None:
    """Return how far a write gets (None: it is no write, or there is no inside to it)."""
    _ = is_first, is_there
    until = within(point, operation) if operation.call in DATA_WRITES else None
    return None if until is None else Answer(until=until)


def _can_strike(point: PlannablePoint, resumed_from: SaveProfile | None) -> bool:
    """Tell whether a point is a write with an inside, in a life that needs no other before it."""
    return can_tear(point, resumed_from) and point.phase is not Phase.RECOVERY


PLAN: Final = FaultPlan(
    kind=FaultKind.SHORT_WRITE,
    can_strike=_can_strike,
    choose=lambda point, rng, _ordinal: Choice(tear_offset=at_any_byte(point, rng)),
    per_lineage=1,
    can_go_on=True,
)

"""What a planner has to know of a kind of fault: where it can strike, and what else is drawn of it; pure.

The kinds themselves are in `chaos.faults`, each with its plan; `KILL` is here because it can strike anywhere, and the
others are told by what they do not share with it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from chaos.model import FaultKind, PlannablePoint, Record, SaveProfile


class Choice(Record, kw_only=True):
    """What is drawn of a fault beside its place; the fields are those of `CrashPoint`."""

    tear_offset: int | None = None
    is_sticky: bool = False
    variant: int = 0


def anywhere(_point: PlannablePoint, _resumed_from: SaveProfile | None) -> bool:
    """Tell that a fault can strike at every point."""
    return True


def torn_at_a_page_or_not(point: PlannablePoint, rng: random.Random, _ordinal: int) -> Choice:
    """Draw whether and at which page boundary the write is torn: half of the time, where it can be."""
    is_torn = point.tears and rng.random() < 0.5  # noqa: PLR2004 half of the time
    return Choice(tear_offset=rng.choice(point.tears) if is_torn else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """How faults of one kind are planned.

    `can_strike` takes a point of the reference and the save that a life struck there should resume from. `choose` draws
    what the place leaves open; its last argument counts the kind's faults in this draw from 0, for what is to come out
    evenly. A lineage has one of `profiles`, in turn. It
    gets about `per_lineage` faults. Where lives that meet the fault may well go on to a good end
    (`can_go_on`), a fault in a recovery that was not reached is drawn anew elsewhere.
    """

    kind: FaultKind = FaultKind.KILL
    can_strike: Callable[[PlannablePoint, SaveProfile | None], bool] = anywhere
    choose: Callable[[PlannablePoint, random.Random, int], Choice] = torn_at_a_page_or_not
    profiles: tuple[str, ...] = ("",)
    per_lineage: int = 5
    can_go_on: bool = False

    def stream(self, purpose: str, *numbers: int) -> random.Random:
        """Return the kind's own random numbers: what is drawn of one kind does not depend on the others asked for."""
        words = ["ninelives", purpose, *map(str, numbers)]
        return random.Random(" ".join(words if self.kind is FaultKind.KILL else [*words, self.kind]))


KILL = FaultPlan()

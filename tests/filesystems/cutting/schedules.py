"""What is nudged to the disk before the cuts at each operation of a save."""

from __future__ import annotations

import random
from enum import StrEnum
from typing import Final

from chaos.images import Nudge
from chaos.model import Record

_CHANCE_OF_A_NUDGE: Final = 0.4
_LAST: Final = (
    Nudge.NONE,
    Nudge.UNRELATED_FSYNC,
    Nudge.COMMIT,
    Nudge.FIRST_HALF,
    Nudge.COMMIT,
    Nudge.SECOND_HALF,
    Nudge.COMMIT,
)


class Plan(StrEnum):
    """The kinds of schedules; what is nudged stays on the disk, so nudging early hides what late nudging shows."""

    QUIET = "quiet"
    FSYNC = "fsync"
    COMMIT = "commit"
    FIRST_HALF = "first_half"
    SECOND_HALF = "second_half"
    DRAWN = "drawn"


_EACH: Final = {
    Plan.QUIET: (Nudge.NONE,),
    Plan.FSYNC: (Nudge.NONE, Nudge.UNRELATED_FSYNC),
    Plan.COMMIT: (Nudge.COMMIT, Nudge.UNRELATED_FSYNC),
    Plan.FIRST_HALF: (Nudge.FIRST_HALF, Nudge.COMMIT),
    Plan.SECOND_HALF: (Nudge.SECOND_HALF, Nudge.COMMIT),
}


class Schedule(Record, kw_only=True):
    """A plan, and for a drawn one the seed."""

    plan: Plan
    seed: int = 0

    def before(self, index: int) -> tuple[Nudge, ...]:
        """Return the nudges before operation `index`; a cut follows each."""
        if self.plan is not Plan.DRAWN:
            return _EACH[self.plan]
        rng = random.Random(f"{self.seed} {index}")
        chosen = rng.choice([nudge for nudge in Nudge if nudge is not Nudge.NONE])
        return (chosen,) if rng.random() < _CHANCE_OF_A_NUDGE else (Nudge.NONE,)

    def last(self) -> tuple[Nudge, ...]:
        """Return the nudges when the save is over."""
        return (Nudge.NONE,) if self.plan is Plan.QUIET else _LAST


THOROUGH: Final = (
    *(Schedule(plan=plan) for plan in Plan if plan is not Plan.DRAWN),
    *(Schedule(plan=Plan.DRAWN, seed=seed) for seed in (1, 2, 3)),
)
QUICK: Final = (Schedule(plan=Plan.DRAWN, seed=4),)

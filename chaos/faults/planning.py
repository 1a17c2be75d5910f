"""The trials of a campaign with several kinds of fault: each drawn by itself, from its own random numbers; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from chaos.faults import PLANS
from chaos.model import CrashPoint, FaultKind, Outcome, Phase, PlannablePoint, TargetProfile, Trial, TrialKind
from chaos.planners.drawing import draw_schedule
from chaos.planners.redraw import redraw

_IN_VAIN: Final = 4


def draw_each_kind(
    kinds: Iterable[FaultKind],
    profile: TargetProfile,
    points: Sequence[PlannablePoint],
    *,
    wanted: int,
    phases: Mapping[Phase, float],
    seed: int,
    first_number: int,
) -> tuple[Trial, ...]:
    """Return trials with `wanted` crash points of each kind, numbered on; none of a kind that can strike nowhere."""
    trials: list[Trial] = []
    for kind in kinds:
        number = first_number + len(trials)
        trials += draw_schedule(
            profile, points, kills=wanted, phases=phases, seed=seed, first_number=number, plan=PLANS[kind]
        )
    return tuple(trials)


def redraw_each_kind(
    missing: Mapping[FaultKind, Sequence[CrashPoint]],
    profile: TargetProfile,
    points: Sequence[PlannablePoint],
    *,
    seed: int,
    attempt: int,
    first_number: int,
) -> tuple[Trial, ...]:
    """Return trials with one new crash point for each of `missing` that has a phase with points."""
    trials: list[Trial] = []
    for kind, missed in missing.items():
        number = first_number + len(trials)
        trials += redraw(profile, points, missed, seed=seed, attempt=attempt, first_number=number, plan=PLANS[kind])
    return tuple(trials)


def missing_faults(
    outcomes: Collection[Outcome], kinds: Iterable[FaultKind], wanted: int
) -> dict[FaultKind, tuple[CrashPoint, ...]]:
    """Return the crash points whose faults did not land, as many as are still wanted, by kind; no kind without any."""
    missing = {kind: _missing_of(outcomes, kind, wanted) for kind in kinds}
    return {kind: points for kind, points in missing.items() if points}


def _missing_of(outcomes: Iterable[Outcome], kind: FaultKind, wanted: int) -> tuple[CrashPoint, ...]:
    """Return the crash points of one kind whose faults did not land, as many as are still wanted.

    None where the last few trials of another kind than `kill` all came to nothing: so will the next ones, as where no
    checkpoint is of a format in which damage could be done.
    """
    found: list[CrashPoint] = []
    mine = [o for o in outcomes if o.trial.kind is TrialKind.FAULTED and o.trial.fault is kind]
    mine.sort(key=lambda outcome: outcome.trial.number)
    for outcome in mine:
        found += outcome.unreached
        evidence = [life.evidence for life in outcome.lives if life.evidence is not None]
        found += [item.crash_point for item in evidence if not item.is_landed]
    last = mine[-_IN_VAIN:]
    if kind is not FaultKind.KILL and len(last) == _IN_VAIN and not any(outcome.kills_landed for outcome in last):
        return ()
    return tuple(found[: max(0, wanted - sum(outcome.kills_landed for outcome in mine))])

"""Kills that were not reached, drawn anew: in the same phases, at other points, in shorter lineages each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from chaos.model import CrashPoint, Phase, PlannablePoint, TargetProfile, Trial
from chaos.planners.kinds import KILL, FaultPlan
from chaos.planners.lineages import OPENERS, chain, course_of, draw_kills, faulted_trials, with_opener

MOST_KILLS_PER_LINEAGE = 3


def redraw(
    profile: TargetProfile,
    points: Sequence[PlannablePoint],
    missing: Sequence[CrashPoint],
    *,
    seed: int,
    attempt: int,
    first_number: int,
    plan: FaultPlan = KILL,
) -> tuple[Trial, ...]:
    """Return trials with one new crash point for each of `missing` (of one kind of fault) that has a phase with points.

    `attempt` counts from 1. The first puts up to three kills into a lineage, the third and later ones only one: a
    first life comes to every point. A single recovery kill becomes one in a save, a step or the startup, since it
    would need another kill before it.
    """
    rng = plan.stream("redraw", seed, attempt)
    course = course_of(profile, points, plan)
    counts = Counter(crash_point.expected_phase for crash_point in missing)
    opener = next((phase for phase in OPENERS if course.places[phase]), None)
    if plan.can_go_on and opener is not None:  # the life before it may have come to a good end, and would again
        counts[opener] += counts.pop(Phase.RECOVERY, 0)
    quotas = with_opener(course, {phase: count for phase, count in counts.items() if course.places[phase]})
    missed = {crash_point.address for crash_point in missing}
    avoid = frozenset(place for place, point in enumerate(course.points) if point.address in missed)
    kills = draw_kills(course, quotas, rng, plan=plan, avoid=avoid)
    most = min(max(MOST_KILLS_PER_LINEAGE + 1 - attempt, 1), plan.per_lineage)
    lineages = chain(course, kills, rng, plan=plan, kills_per_lineage=most)
    return faulted_trials(lineages, rng, first_number=first_number, plan=plan)

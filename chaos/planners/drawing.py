"""The schedule of a campaign, drawn from its seed: so many kills, apportioned to the phases, chained into lineages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chaos.model import Phase, PlannablePoint, TargetProfile, Trial
from chaos.planners.kinds import KILL, FaultPlan
from chaos.planners.lineages import chain, course_of, draw_kills, faulted_trials, with_opener


def draw_schedule(
    profile: TargetProfile,
    points: Sequence[PlannablePoint],
    *,
    kills: int,
    phases: Mapping[Phase, float],
    seed: int,
    first_number: int,
    plan: FaultPlan = KILL,
) -> tuple[Trial, ...]:
    """Return trials with `kills` crash points of one kind of fault in all, the same for the same arguments.

    There are none if no phase asked for has a point. `phases` are weights. A phase without points gives its share to
    the others, and a recovery kill that would have no kill to recover from becomes one in a save, a step or the
    startup: the crash points' `expected_phase` tells what was drawn.
    """
    rng = plan.stream("schedule", seed)
    course = course_of(profile, points, plan)
    available = {phase: weight for phase, weight in phases.items() if course.places[phase]}
    quotas = with_opener(course, apportion(kills, available))
    kills_by_phase = draw_kills(course, quotas, rng, plan=plan)
    lineages = chain(course, kills_by_phase, rng, plan=plan, kills_per_lineage=plan.per_lineage)
    return faulted_trials(lineages, rng, first_number=first_number, plan=plan)


def apportion(kills: int, weights: Mapping[Phase, float]) -> dict[Phase, int]:
    """Share `kills` out by weight, by the largest remainder.

    Each phase of a weight above 0 gets at least one, if there are enough. Ties go to the phase that comes first in
    `Phase`. Without any weight above 0 nobody gets any.
    """
    weighted = [phase for phase in Phase if weights.get(phase, 0) > 0]
    total = sum(weights[phase] for phase in weighted)
    shares = {phase: kills * weights[phase] / total for phase in weighted}
    counts = {phase: int(shares[phase]) for phase in weighted}
    by_remainder = sorted(weighted, key=lambda phase: counts[phase] - shares[phase])
    for phase in by_remainder[: max(kills, 0) - sum(counts.values())]:
        counts[phase] += 1
    while kills >= len(weighted) and 0 in counts.values():
        poor = next(phase for phase in weighted if not counts[phase])
        rich = max((p for p in weighted if counts[p] > 1), key=lambda phase: counts[phase] - shares[phase])
        counts[poor], counts[rich] = 1, counts[rich] - 1
    return counts

"""Kills that were not reached, drawn anew: in the same phases, at other points, in shorter lineages each time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from chaos.model import CrashPoint, PlannablePoint, TargetProfile, Trial
from chaos.planners.lineages import chain, course_of, draw_kills, faulted_trials, with_opener

MOST_KILLS_PER_LINEAGE = 3


def redraw(
    profile: TargetProfile,
    points: Sequence[PlannablePoint],
    missing: Sequence[CrashPoint],
    *,
    seed: int,
    attempt: int,
    first_number: int,
) -> tuple[Trial, ...]:
    """Return trials with one new crash point for each of `missing` that has a phase with points.

    `attempt` counts from 1. The first puts up to three kills into a lineage, the third and later ones only one: a
    first life comes to every point. A single recovery kill becomes one in a save, a step or the startup, since it
    would need another kill before it.
    """
    rng = random.Random(f"ninelives redraw {seed} {attempt}")
    course = course_of(profile, points)
    counts = Counter(crash_point.expected_phase for crash_point in missing)
    quotas = with_opener(course, {phase: count for phase, count in counts.items() if course.places[phase]})
    missed = {crash_point.address for crash_point in missing}
    avoid = frozenset(place for place, point in enumerate(course.points) if point.address in missed)
    kills = draw_kills(course, quotas, rng, avoid=avoid)
    lineages = chain(course, kills, rng, kills_per_lineage=max(MOST_KILLS_PER_LINEAGE + 1 - attempt, 1))
    return faulted_trials(lineages, rng, first_number=first_number)

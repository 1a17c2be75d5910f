"""How many of the known crash points a campaign hit, and what its kills bound if none of them showed a failure; pure.

A point is an operation: its address in a first life, and the phase that it is struck in (an operation of the start is
one point in a first life, and another where a later life recovers). A kill before the operation hits it, and so does
one inside it: a torn write is its write.

A kill in a later life has an address of that life. It is traced back as the planner drew it, from the save that this
life should have resumed from. Where the records contradict that (the life had found another save, or is known to have
begun elsewhere), and where the phase or the operation is not the known one, the kill is counted apart: it is no
coverage. So is every kill of a polled life, which lands only near its point.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from chaos.checks.lineage import is_completed
from chaos.checks.recency import not_damaged, order_of
from chaos.model import (
    Address,
    CheckName,
    Evidence,
    LifeRecord,
    LivesMode,
    Outcome,
    Phase,
    PlannablePoint,
    Record,
    Reference,
    SaveProfile,
    TrialKind,
    Violation,
)
from chaos.planners.lineages import Course, course_of

_RULE_OF_THREE = 3.0
_STARTS = (Phase.STARTUP, Phase.RECOVERY)


class PointCount(Record, kw_only=True):
    """So many points are known, and so many of them were hit at least once."""

    known: int = 0
    hit: int = 0


class Coverage(Record, kw_only=True):
    """What the landed kills of a campaign cover.

    `points_known` and `points_hit` are the sums over `by_phase`; `by_call` counts the points in saves alone, by system
    call, `tears` the writes that can be torn and those that were. `kills_unmatched` landed where no known point is.
    `kills_bounding` counts the kills whose lineages ran to their ends. `failure_bound` is the largest share of kills
    drawn in the same way that may show a failure, at 95 % confidence, from 0 to 1; None where anything was found, or
    where no kill bounds it.
    """

    points_known: int = 0
    points_hit: int = 0
    by_phase: dict[Phase, PointCount] = msgspec.field(default_factory=lambda: dict.fromkeys(Phase, PointCount()))
    by_call: dict[str, PointCount] = msgspec.field(default_factory=dict)
    tears: PointCount = PointCount()
    kills_unmatched: int = 0
    kills_bounding: int = 0
    failure_bound: float | None = None


class _Strike(Record, kw_only=True):
    """One landed kill and the place in the course that it hit (None: no known one)."""

    evidence: Evidence
    place: int | None


def coverage_of(
    points: Sequence[PlannablePoint],
    reference: Reference,
    outcomes: Iterable[Outcome],
    violations: Collection[Violation],
    *,
    mode: LivesMode = LivesMode.INTERCEPTED,
) -> Coverage:
    """Count what the faulted lineages among `outcomes` hit of `points`, the known ones in the order of the reference.

    `violations` are all broken rules: with any, nothing is bounded, and a life that lost work began elsewhere.
    """
    course = course_of(reference.profile, points)
    faulted = [outcome for outcome in outcomes if outcome.trial.kind is TrialKind.FAULTED]
    tracer = _Tracer(course, reference, violations)
    strikes = [strike for outcome in faulted for strike in tracer.trace(outcome)]
    matched = strikes if mode is LivesMode.INTERCEPTED else []
    hits = {(strike.evidence.phase, strike.place) for strike in matched if strike.place is not None}
    bounding = sum(outcome.kills_landed for outcome in faulted if is_completed(outcome))
    by_phase = {phase: _count(places, hits, phase) for phase, places in course.places.items()}
    return Coverage(
        points_known=sum(count.known for count in by_phase.values()),
        points_hit=len(hits),
        by_phase=by_phase,
        by_call=_by_call(course, hits),
        tears=_tears(course, matched),
        kills_unmatched=len(strikes) - sum(strike.place is not None for strike in matched),
        kills_bounding=bounding,
        failure_bound=None if violations else failure_bound(bounding),
    )


def failure_bound(kills: int) -> float | None:
    """Return the largest share of failures that `kills` kills without one leave open at 95 % (None: no kill).

    This is the rule of three, 3/N, never below the exact 1 - 0.05^(1/N) (Hanley and Lippman-Hand, JAMA 249, 1983).
    """
    return min(1.0, _RULE_OF_THREE / kills) if kills > 0 else None


_Hits = set[tuple[Phase, int]]


def _count(places: Sequence[int], hits: _Hits, phase: Phase) -> PointCount:
    """Count the places of one phase."""
    return PointCount(known=len(places), hit=sum((phase, place) in hits for place in places))


def _by_call(course: Course, hits: _Hits) -> dict[str, PointCount]:
    """Count the points in saves by their calls, in the order of the alphabet."""
    places: dict[str, list[int]] = {}
    for place in course.places[Phase.SAVE]:
        places.setdefault(course.points[place].address.call, []).append(place)
    return {call: _count(places[call], hits, Phase.SAVE) for call in sorted(places)}


def _tears(course: Course, strikes: Iterable[_Strike]) -> PointCount:
    """Count the writes that can be torn, and those inside which a kill left the first bytes written."""
    torn = {strike.place for strike in strikes if strike.evidence.executed_bytes > 0}
    tearable = [place for place, point in enumerate(course.points) if point.tears]
    return PointCount(known=len(tearable), hit=sum(place in torn for place in tearable))


class _Tracer:
    """Traces the kills of a lineage back to the reference's points."""

    def __init__(self, course: Course, reference: Reference, violations: Iterable[Violation]) -> None:
        """Prepare for lineages of one campaign."""
        self._course = course
        self._order = order_of(reference)
        self._places = {
            (phase, course.points[place].address): place for phase, places in course.places.items() for place in places
        }
        self._lost = {(found.trial, found.life) for found in violations if found.check is CheckName.LOST_WORK}

    def trace(self, outcome: Outcome) -> Iterator[_Strike]:
        """Yield the landed kills of a lineage, in their order."""
        resumed: SaveProfile | None = None
        is_known, before = True, None
        for life in outcome.lives:
            is_known = is_known and (outcome.trial.number, life.number) not in self._lost
            is_known = is_known and (before is None or self._has_found(before, resumed))
            before = life
            if life.evidence is None or not life.evidence.is_landed:
                is_known = False
                continue
            is_start = life.evidence.phase in _STARTS
            place = self._place(life.evidence, None if is_start else resumed) if is_known or is_start else None
            yield _Strike(evidence=life.evidence, place=place)
            if not is_start:  # a life that was killed in its start leaves the next one where it was
                is_known = place is not None
                resumed = None if place is None else self._course.resumed_from[place]

    def _place(self, evidence: Evidence, resumed: SaveProfile | None) -> int | None:
        """Return the place that a kill hit in a life that resumed from a save (None: no known one)."""
        return self._places.get((evidence.phase, _in_first_life(evidence.crash_point.address, resumed)))

    def _has_found(self, before: LifeRecord, resumed: SaveProfile | None) -> bool:
        """Tell whether the checkpoints that a life left are those of the save that the next one should resume from.

        Also where they tell nothing: their content is not the reference's, or its saves cannot be told by content.
        """
        order, found = self._order, not_damaged(before.crash_state)
        is_exact = order.is_gapless and len(order.saves) == len(self._course.profile.saves)
        if not is_exact or any(order.rank(file.digest) is None for file in found):
            return True
        newest = order.newest_save(found) or order.start
        return not newest.is_exact or newest.ordinal == (resumed.ordinal if resumed is not None else 0)


def _in_first_life(address: Address, resumed: SaveProfile | None) -> Address:
    """Return an address of a life that resumed from a save as a first life has it: the reverse of `relative`."""
    if resumed is None:
        return address
    if address.save:
        return msgspec.structs.replace(address, save=address.save + resumed.ordinal)
    return msgspec.structs.replace(address, tick=address.tick + resumed.ticks_before)

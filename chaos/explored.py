"""What an exploration showed: one outcome for each crash point, from those of the states; intervals; pure over events.

Points whose states are equal share one recovery. They differ in what the target had acknowledged by then, so each is
judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from chaos.journal import Event, ExplorationPlan, StatesFound, TrialFinished, TrialsPlanned
from chaos.model import (
    Address,
    CheckName,
    CrashPoint,
    FaultKind,
    FileSystem,
    FoundState,
    LifeEnd,
    LifeRecord,
    Outcome,
    Record,
    Trial,
    TrialKind,
    Violation,
)
from chaos.planners.exhaustive import within_saves
from chaos.struck import crash_point_of, struck_life


class OperationCount(Record, kw_only=True):
    """Crash points at one kind of operation on one file: how many there are, were judged, and broke a rule."""

    operation: str
    file: str
    points: int = 0
    judged: int = 0
    failing: int = 0


class Interval(Record, kw_only=True):
    """Operations between which a kill breaks a rule: from when `opens` has been carried out until `closes` has been.

    `save` is the save they are in (0: in none). `life` is the life that is killed. `is_torn`: it opens within `opens`,
    once its first pages are written. `points` counts the crash points between. `closes` is None where it stays open.
    """

    check: CheckName
    life: int
    save: int
    opens: Address | None
    closes: Address | None
    is_torn: bool
    points: int


class FaultCount(Record, kw_only=True):
    """What was enumerated of one kind of fault: points, distinct states (of errors: trials), how many broke a rule."""

    fault: FaultKind
    points: int = 0
    states: int = 0
    judged: int = 0
    failing: int = 0


class LostGroup(Record, kw_only=True):
    """States of a loss of power in which the same thing is missing: a call, before an operation, by some rules."""

    checks: tuple[CheckName, ...]
    path: str
    missing: str
    published_by: str
    saves: tuple[int, ...]
    profiles: tuple[FileSystem, ...]
    states: int


class Explored(Record, kw_only=True):
    """What was enumerated and judged. `points` are crash points, `states_distinct` what is left without equal ones.

    `points_recorded` are those of the recorded run itself, the others those of recoveries that led to a new state.
    `points_judged` counts the points whose state was judged; `states_early_stopped` the recoveries that were not run to
    their end. `points_cut` are points at which the model allows more states of a loss of power than were tried, which
    were at most `num_losses` for each file system. `by_operation` and `intervals` are of all kinds but the loss of
    power; its own are `losses`.
    """

    depth: int
    saves: str
    points: int
    points_recorded: int
    points_judged: int
    states_distinct: int
    states_judged: int
    states_early_stopped: int
    by_operation: tuple[OperationCount, ...]
    intervals: tuple[Interval, ...] = ()
    by_fault: tuple[FaultCount, ...] = ()
    losses: tuple[LostGroup, ...] = ()
    points_cut: int = 0
    num_losses: int = 0


class _Point(Record, kw_only=True):
    """One crash point: of which recorded life, with which outcome (None: its state was not tried)."""

    group: tuple[int, int]
    found: FoundState
    outcome: Outcome | None


def points_of(events: Sequence[Event], saves: str) -> tuple[_Point, ...]:
    """Return every crash point with the outcome of its state, in the order of the lives."""
    finished = {event.outcome.trial.number: event.outcome for event in events if isinstance(event, TrialFinished)}
    by_state = {o.trial.state: o for o in finished.values() if o.trial.kind is TrialKind.EXPLORED}
    points = []
    for event in events:
        if isinstance(event, StatesFound) and (event.slot == 0 or event.life > 1) and event.trial in finished:
            lives = finished[event.trial].lives
            states = within_saves(event.states, saves) if event.life == 1 else event.states
            for found in states:
                outcome = by_state.get(found.digest)
                if outcome is not None:
                    struck = struck_life(lives[-1], found)
                    outcome = _with_lives(outcome, (*lives[:-1], struck))
                points.append(_Point(group=(event.trial, event.life), found=found, outcome=outcome))
    return tuple(points)


def _with_lives(outcome: Outcome, lives: tuple[LifeRecord, ...]) -> Outcome:
    """Put other lives before the recovery of an outcome; the state in the folder is the same."""
    *_, seen, recovery = outcome.lives
    *before, struck = lives
    struck = msgspec.structs.replace(
        struck, crash_state=seen.crash_state, state_digest=seen.state_digest, other_files=seen.other_files
    )
    if seen.evidence is not None and struck.evidence is not None:  # what was done to the files belongs to the state
        own = struck.evidence
        evidence = msgspec.structs.replace(
            seen.evidence,
            crash_point=own.crash_point,
            phase=own.phase,
            operation_index=own.operation_index,
            loss=own.loss,
        )
        struck = msgspec.structs.replace(struck, evidence=evidence)
    return msgspec.structs.replace(outcome, lives=(*before, struck, recovery))


def outcomes_of(points: Iterable[_Point]) -> tuple[Outcome, ...]:
    """Return the outcomes to be judged, one for each point whose state was tried."""
    return tuple(point.outcome for point in points if point.outcome is not None)


def doubts_about(
    points: Sequence[_Point], events: Sequence[Event], kinds: Iterable[FaultKind]
) -> dict[FaultKind, tuple[str, ...]]:
    """Say of each kind what an exploration leaves open: what was not tried, or that there was nothing to try."""
    return {
        kind: tuple(_doubts_about_errors(events, kind) if kind.is_error else _doubts(points, kind)) for kind in kinds
    }


def _doubts(points: Sequence[_Point], kind: FaultKind) -> Iterator[str]:
    """Doubt states of one kind that were not tried, or that there are none."""
    mine = [point for point in points if point.found.fault is kind]
    left = [point for point in mine if point.outcome is None]
    if not mine:
        yield f"The recorded run went through no point where {kind} could strike: nothing of it was explored."
    elif left:
        saves = sorted({point.found.address.save for point in left if point.found.address.save})
        where = f", in saves {', '.join(map(str, saves))}" if saves else ""
        yield f"{len(left)} of {len(mine)} crash points were not judged ({kind}){where}: give a larger --budget."


def _doubts_about_errors(events: Sequence[Event], kind: FaultKind) -> Iterator[str]:
    """Doubt trials of one kind of error that were not run, that did not meet it, or that there are none."""
    planned = {t.number for e in events if isinstance(e, TrialsPlanned) for t in e.trials if _is_of(t, kind)}
    outcomes = [e.outcome for e in events if isinstance(e, TrialFinished) and _is_of(e.outcome.trial, kind)]
    missed = sum(not outcome.kills_landed for outcome in outcomes)
    if not planned:
        yield f"The recorded run came to no operation at which {kind} could strike: nothing of it was explored."
    if len(outcomes) < len(planned):
        yield f"{len(planned) - len(outcomes)} of {len(planned)} trials of {kind} were not run: give a larger --budget."
    if missed:
        yield f"In {missed} of {len(outcomes)} trials of {kind} the error was never met: they show nothing."


def _is_of(trial: Trial, kind: FaultKind) -> bool:
    """Tell whether a trial lets a life meet an error of a kind."""
    return trial.kind is TrialKind.FAULTED and trial.fault is kind


def summarize(
    points: Sequence[_Point],
    violations: Iterable[Violation],
    events: Sequence[Event],
    plan: ExplorationPlan,
    kinds: Sequence[FaultKind] = (FaultKind.KILL,),
) -> Explored:
    """Count points and states, by kind, operation and file, and find where a rule is broken."""
    bad: dict[tuple[int, CrashPoint], set[CheckName]] = {}
    for violation in violations:
        if violation.crash_point is not None:
            bad.setdefault((violation.trial, violation.crash_point), set()).add(violation.check)
    checks = [_checks_at(point, bad) for point in points]
    judged = {point.found.digest for point in points if point.outcome is not None}
    stopped = [
        event.outcome.trial.number
        for event in events
        if isinstance(event, TrialFinished) and event.outcome.lives and event.outcome.lives[-1].end is LifeEnd.STOPPED
    ]
    by_place = [(p, c) for p, c in zip(points, checks, strict=True) if p.found.fault is not FaultKind.POWER_LOSS]
    placed, broken = [point for point, _ in by_place], [found for _, found in by_place]
    return Explored(
        depth=plan.depth,
        saves=plan.saves,
        points=len(points),
        points_recorded=sum(point.group[1] == 1 for point in points),
        points_judged=sum(point.outcome is not None for point in points),
        states_distinct=len({point.found.digest for point in points}),
        states_judged=len(judged),
        states_early_stopped=len(stopped),
        by_operation=_by_operation(placed, broken),
        intervals=tuple(interval for kind in kinds for interval in _intervals(*_of_kind(by_place, kind))),
        by_fault=tuple(_by_fault(points, checks, kinds, events, bad)),
        losses=tuple(_losses(points, checks)),
        points_cut=sum(e.num_cut for e in events if isinstance(e, StatesFound) and (e.slot == 0 or e.life > 1)),
        num_losses=plan.enumeration.num_losses,
    )


def _of_kind(
    by_place: Sequence[tuple[_Point, set[CheckName]]], kind: FaultKind
) -> tuple[list[_Point], list[set[CheckName]]]:
    """Return the points of one kind of fault, and what is broken at each."""
    mine = [(point, broken) for point, broken in by_place if point.found.fault is kind]
    return [point for point, _ in mine], [broken for _, broken in mine]


def _by_fault(
    points: Sequence[_Point],
    checks: Sequence[set[CheckName]],
    kinds: Sequence[FaultKind],
    events: Sequence[Event],
    bad: Mapping[tuple[int, CrashPoint], set[CheckName]],
) -> Iterator[FaultCount]:
    """Yield the counts of each kind; states that break a rule are counted once, as those of errors are trials."""
    finished = [e.outcome for e in events if isinstance(e, TrialFinished) and e.outcome.trial.kind is TrialKind.FAULTED]
    planned = [t for e in events if isinstance(e, TrialsPlanned) for t in e.trials if t.kind is TrialKind.FAULTED]
    for kind in kinds:
        if kind.is_error:
            mine = [outcome for outcome in finished if outcome.trial.fault is kind]
            numbers = {outcome.trial.number for outcome in mine}
            num_planned = sum(trial.fault is kind for trial in planned)
            failing = len({number for number, _ in bad if number in numbers})
            yield FaultCount(fault=kind, points=num_planned, states=num_planned, judged=len(mine), failing=failing)
            continue
        found = [(point, broken) for point, broken in zip(points, checks, strict=True) if point.found.fault is kind]
        yield FaultCount(
            fault=kind,
            points=len(found),
            states=len({point.found.digest for point, _ in found}),
            judged=len({point.found.digest for point, _ in found if point.outcome is not None}),
            failing=len({point.found.digest for point, broken in found if broken}),
        )


def _losses(points: Sequence[_Point], checks: Sequence[set[CheckName]]) -> Iterator[LostGroup]:
    """Yield what is missing in the states of a loss of power that break a rule, the most frequent first."""
    groups: dict[tuple[str, str, str], list[tuple[_Point, set[CheckName]]]] = {}
    for point, broken in zip(points, checks, strict=True):
        for lack in point.found.loss.not_durable if broken and point.found.loss is not None else ():
            _, _, operation = lack.published_by.rpartition(": ")
            groups.setdefault((lack.path, lack.missing, operation), []).append((point, broken))
    for (path, missing, operation), found in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        losses = [point.found.loss for point, _ in found if point.found.loss is not None]
        yield LostGroup(
            checks=tuple(sorted({check for _, broken in found for check in broken})),
            path=path,
            missing=missing,
            published_by=operation,
            saves=tuple(sorted({point.found.address.save for point, _ in found if point.found.address.save})),
            profiles=tuple(name for name in FileSystem if any(name in loss.profiles for loss in losses)),
            states=len({point.found.digest for point, _ in found}),
        )


def _checks_at(point: _Point, bad: dict[tuple[int, CrashPoint], set[CheckName]]) -> set[CheckName]:
    """Return the checks that a kill at this point breaks."""
    if point.outcome is None:
        return set()
    return bad.get((point.outcome.trial.number, crash_point_of(point.outcome.lives[-2])), set())


def _by_operation(points: Sequence[_Point], checks: Sequence[set[CheckName]]) -> tuple[OperationCount, ...]:
    """Count points by call and file."""
    counts: dict[tuple[str, str], list[int]] = {}
    for point, broken in zip(points, checks, strict=True):
        count = counts.setdefault((point.found.address.call, point.found.address.file), [0, 0, 0])
        count[0] += 1
        count[1] += point.outcome is not None
        count[2] += bool(broken)
    return tuple(
        OperationCount(operation=call, file=file, points=count[0], judged=count[1], failing=count[2])
        for (call, file), count in sorted(counts.items(), key=lambda item: (item[0][1], item[0][0]))
    )


def _intervals(points: Sequence[_Point], checks: Sequence[set[CheckName]]) -> Iterator[Interval]:
    """Yield, for each rule and each recorded life, the runs of points at which it is broken."""
    broken = sorted({check for found in checks for check in found})
    for check in broken:
        first: int | None = None
        for position in range(len(points) + 1):
            is_same_life = (
                first is not None and position < len(points) and points[position].group == points[first].group
            )
            is_bad = position < len(points) and check in checks[position]
            if first is not None and not (is_bad and is_same_life):
                yield _interval(points, check, first, position - 1)
                first = None
            if is_bad and first is None:
                first = position


def _interval(points: Sequence[_Point], check: CheckName, first: int, last: int) -> Interval:
    """Describe one run of points by the operations that open and close it."""
    head = points[first]
    is_torn = head.found.tear_offset is not None
    before = [p for p in points[:first] if p.group == head.group and p.found.is_change]
    after = [p for p in points[last:] if p.group == head.group and p.found.is_change]
    opens = head.found.address if is_torn else (before[-1].found.address if before else None)
    return Interval(
        check=check,
        life=head.group[1],
        save=head.found.address.save,
        opens=opens,
        closes=after[0].found.address if after else None,
        is_torn=is_torn,
        points=last - first + 1,
    )

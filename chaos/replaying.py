"""Run one trial of an earlier run again, from its stored, resolved schedule, and hold it against what was seen then."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from chaos.campaign import Campaign
from chaos.early_stop import with_end_of_twin
from chaos.errors import UsageError
from chaos.executors.pool import LocalPool
from chaos.exploration import Exploration
from chaos.journal import Event, Journal, ReferenceRecorded, TrialFinished, TrialsPlanned
from chaos.judging import complete
from chaos.model import Outcome, Trial, TrialKind
from chaos.reports.replay import LifeComparison, Replay
from chaos.runs import name_to_type, started_of
from chaos.verdict import findings_of, violations_of


def replay(folder: Path, events: tuple[Event, ...], number: int) -> Replay:
    """Run trial `number` of the run in `folder` again; UsageError where there is no such trial."""
    started = started_of(events, folder)
    recorded = next((event for event in events if isinstance(event, ReferenceRecorded)), None)
    planned = {trial.number: trial for event in events if isinstance(event, TrialsPlanned) for trial in event.trials}
    planned = {key: trial for key, trial in planned.items() if trial.kind is not TrialKind.CANARY}  # a bug of ours
    planned |= {trial.number: trial for trial in _explored(events)}
    if recorded is None or number not in planned:
        known = ", ".join(map(str, sorted(planned))) or "none"
        message = f"run {started.run} has no trial {number}"
        raise UsageError(message, hint=f"its trials are: {known}")
    outcomes = {event.outcome.trial.number: event.outcome for event in events if isinstance(event, TrialFinished)}
    trial = planned[number]
    if trial.kind is TrialKind.EXPLORED:
        outcome = _build_again(folder, events, trial)
    else:
        outcome = _run_again(folder, events, recorded, trial)
    reference = complete(recorded.reference, tuple(outcomes.values()))
    judged = tuple(o for o in outcomes.values() if o.trial.kind is TrialKind.CONTROL and o.trial.number != number)
    violations = [v for v in violations_of(reference, (*judged, outcome), started.scenario.target) if v.trial == number]
    then = outcomes.get(number)
    lives = _compare(with_end_of_twin(then, outcomes) if then is not None else None, outcome)  # it runs to its end now
    return Replay(
        run=started.run,
        trial=number,
        is_same=all(life.is_same for life in lives),
        lives=lives,
        findings=findings_of(violations, name_to_type(folder)),
        folder=str(replay_folder(folder, number)),
    )


def replay_folder(folder: Path, number: int) -> Path:
    """Return where a trial is replayed: a path as long as the trial's own."""
    return folder / "replay" / f"{number:04d}"


def _run_again(folder: Path, events: tuple[Event, ...], recorded: ReferenceRecorded, trial: Trial) -> Outcome:
    """Run the trial in a folder of its own."""
    place = replay_folder(folder, trial.number)
    shutil.rmtree(place, ignore_errors=True)
    with Journal(folder) as journal, LocalPool(1) as pool:
        campaign = Campaign(folder, journal, events, lambda _: None)
        (outcome,) = pool.run([(campaign.spec(trial, recorded.reference), place)])
    return outcome


def _explored(events: tuple[Event, ...]) -> Iterator[Trial]:
    """Yield the trials that began in crash states that were built."""
    for event in events:
        if isinstance(event, TrialFinished) and event.outcome.trial.kind is TrialKind.EXPLORED:
            yield event.outcome.trial


def _build_again(folder: Path, events: tuple[Event, ...], trial: Trial) -> Outcome:
    """Build a crash state again, in the place where it was tried, and recover from it."""
    place = replay_folder(folder, trial.number)
    shutil.rmtree(place, ignore_errors=True)
    with Journal(folder) as journal, LocalPool(1) as pool:
        spec = Exploration(folder, journal, events, lambda _: None).spec_again(trial.number)
        (outcome,) = pool.run([(spec, place)])
    return outcome


def _compare(then: Outcome | None, now: Outcome) -> tuple[LifeComparison, ...]:
    """Pair the lives of two runs of a trial."""
    lives_then = then.lives if then is not None else ()
    points = [str(point) for point in now.trial.crash_points]
    return tuple(
        LifeComparison(
            life=position + 1,
            crash_point=points[position] if position < len(points) else "no kill, to its end",
            recorded_digest=lives_then[position].state_digest if position < len(lives_then) else None,
            replayed_digest=now.lives[position].state_digest if position < len(now.lives) else None,
        )
        for position in range(max(len(lives_then), len(now.lives)))
    )

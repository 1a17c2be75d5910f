"""What `chaos run` and its relatives do around a campaign: settle what is asked, run it, judge it, report it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, TextIO

import click
import msgspec

from chaos.bounds import folder_bytes
from chaos.campaign import Campaign
from chaos.errors import ChaosError, HarnessError, UsageError
from chaos.exploration import Exploration
from chaos.journal import CampaignEnded, CampaignStarted, Event, ExplorationPlan, ReferenceRecorded, read_events
from chaos.judging import Judged, judge_events
from chaos.lives.starters import require_warmable
from chaos.model import SCHEMA, FaultKind, Record, Trial, TrialKind
from chaos.reports.result import to_json
from chaos.reports.terminal import Progress, print_report
from chaos.runs import find_run, name_to_type, open_run, start_run, started_of
from chaos.scenario import Scenario
from chaos.settings import LivesKind, Settings, SettingsLayer, resolve_settings
from chaos.tables import FaultSpec
from chaos.verdict import exit_status

_RESULT: Final = "result.json"
_CAN_CHANGE: Final = frozenset({"budget_s", "max_bytes", "keep"})
_INTERRUPTED: Final = "interrupted\n  go on with: chaos run --continue {run}"
_INTERRUPTED_STATUS: Final = 130


class Asked(Record, kw_only=True):
    """One invocation: the scenario, what the command line says of settings, where runs are kept, how to answer."""

    scenario: Scenario
    layer: SettingsLayer
    root: Path
    is_json: bool = False
    exploration: ExplorationPlan | None = None
    default_lives: LivesKind = LivesKind.FRESH


class Planned(Record, kw_only=True):
    """What `chaos run --dry-run --json` prints: the schedule, and what it would cost."""

    schema: int = SCHEMA
    seed: int
    trials: tuple[Trial, ...]
    kills: int
    points: int
    expected_seconds: float
    expected_bytes: int


def settle(asked: Asked) -> tuple[Scenario, Settings]:
    """Merge all sources of settings; the scenario comes back with the deadline and the faults that are in force."""
    settings = resolve_settings(asked.layer, asked.scenario, default_lives=asked.default_lives)
    target = msgspec.structs.replace(asked.scenario.target, deadline_s=settings.deadline_s)
    if settings.lives is LivesKind.WARM:
        require_warmable(target)
    if settings.no_intercept and settings.faults != (FaultKind.KILL,):
        others = ", ".join(kind for kind in settings.faults if kind is not FaultKind.KILL)
        message = f"without interception a target can only be killed: {others} would have to answer its calls"
        raise UsageError(message, hint="leave --no-intercept (or CHAOS_NO_INTERCEPT) out; `chaos doctor` says why not")
    if settings.no_intercept and settings.stop_early:
        message = "without interception nobody sees all that a recovery does, so it is never stopped early"
        raise UsageError(message, hint="leave --stop-early (or CHAOS_STOP_EARLY) out, or --no-intercept")
    faults = tuple(FaultSpec(kind=kind) for kind in settings.faults)
    return msgspec.structs.replace(asked.scenario, target=target, faults=faults), settings


def run_campaign(asked: Asked, progress: TextIO) -> int:
    """Run a whole campaign and report it; return the exit status."""
    scenario, settings = settle(asked)
    if asked.exploration is not None and settings.no_intercept:
        message = "an exploration needs every operation, and without interception they are not seen"
        raise UsageError(message, hint="leave --no-intercept (or CHAOS_NO_INTERCEPT) out; `chaos doctor` says why not")
    folder, started = start_run(asked.root, scenario, settings, exploration=asked.exploration)
    return _run_and_report(folder, started, settings, is_json=asked.is_json, progress=progress)


def conduct(asked: Asked, progress: TextIO) -> tuple[Path, Judged]:
    """Run a whole campaign and judge it; return its folder and what came of it."""
    scenario, settings = settle(asked)
    folder, started = start_run(asked.root, scenario, settings, is_latest=False)
    return folder, _carry_on(folder, started, settings, progress)


def _run_and_report(
    folder: Path, started: CampaignStarted | None, settings: Settings, *, is_json: bool, progress: TextIO
) -> int:
    """Run what is not recorded yet and report it; a campaign that is broken off is reported too, with the error."""
    try:
        judged = _carry_on(folder, started, settings, progress)
    except ChaosError as error:
        return _report_error(folder, str(error), error.exit_status, is_json=is_json)
    except KeyboardInterrupt:
        return _report_error(
            folder, _INTERRUPTED.format(run=name_to_type(folder)), _INTERRUPTED_STATUS, is_json=is_json
        )
    return report(judged, is_json=is_json, progress=progress)


def _report_error(folder: Path, sentence: str, status: int, *, is_json: bool) -> int:
    """Say what broke the campaign off; as JSON, together with what is known so far. Return the exit status."""
    if is_json:
        result = judge_events(read_events(folder), folder).result
        click.echo(to_json(msgspec.structs.replace(result, error=sentence)))
    click.echo(f"Error: {sentence}", err=True)
    return status


def go_on(root: Path, name: str, layer: SettingsLayer, *, is_json: bool, progress: TextIO) -> int:
    """Go on with a campaign that was interrupted, and report it; `layer` may set new bounds. Return the exit status.

    Raises UsageError where `layer` says something that was settled when the campaign began.
    """
    said = msgspec.structs.asdict(layer)
    changed = [name for name, value in said.items() if value is not None and name not in _CAN_CHANGE]
    if changed:
        message = f"--{changed[0].removesuffix('_s').replace('_', '-')} cannot be changed in a campaign that has begun"
        raise UsageError(message, hint="leave it out, or start a new run without --continue")
    folder = find_run(root, name)
    with open_run(folder) as (_, events):
        started = started_of(events, folder)
    if started.power_cut is not None:
        message = f"{started.run} is a campaign of power cuts, which nobody can go on with"
        raise UsageError(message, hint="start a new one with `chaos powercut`")
    settings = resolve_settings(layer, started.scenario)
    return _run_and_report(folder, None, settings, is_json=is_json, progress=progress)


def _carry_on(folder: Path, started: CampaignStarted | None, settings: Settings, progress: TextIO) -> Judged:
    """Run what is not recorded yet in `folder`, judge, and keep the result."""
    observer = Progress(progress)
    with open_run(folder) as (journal, recorded):
        events: tuple[Event, ...] = recorded
        for event in recorded:
            observer.remember(event)
        if started is not None:
            journal.append(started)
            observer.handle(started)
            events = (*recorded, started)
        if not any(isinstance(event, CampaignEnded) for event in events):
            begun = started_of(events, folder)
            kind = Campaign if begun.exploration is None else Exploration
            campaign = kind(folder, journal, events, observer.handle)
            campaign.limit(budget_s=settings.budget_s, max_bytes=settings.max_bytes, keep=settings.keep)
            campaign.run()
    return rejudge(folder)


def rejudge(folder: Path) -> Judged:
    """Work the verdict out from the journal and store it as `result.json`; HarnessError where that cannot be."""
    with open_run(folder) as (_, events):
        judged = judge_events(events, folder)
        try:
            (folder / _RESULT).write_bytes(msgspec.json.format(to_json(judged.result).encode()) + b"\n")
        except OSError as error:
            message = f"{folder / _RESULT} cannot be written: {error.strerror}"
            raise HarnessError(message, hint=f"free some space, then type: chaos judge {folder}") from error
    return judged


def report(judged: Judged, *, is_json: bool, progress: TextIO) -> int:
    """Print the report, or the JSON object; return the exit status."""
    if is_json:
        click.echo(to_json(judged.result))
    else:
        print_report(judged.result, progress)
    return exit_status(judged.judgement)


def dry_run(asked: Asked, progress: TextIO) -> int:
    """Run what a schedule is drawn from, print the schedule and its cost; return the exit status."""
    scenario, settings = settle(asked)
    folder, started = start_run(asked.root, scenario, settings)
    with open_run(folder) as (journal, _):
        observer = Progress(progress)
        journal.append(started)
        observer.handle(started)
        recorded, trials = Campaign(folder, journal, (started,), observer.handle).plan()
        journal.append(CampaignEnded(elapsed_s=0.0, causes=("this was a dry run: only the canary was killed",)))
    planned = _cost(started, recorded, trials, folder)
    if asked.is_json:
        click.echo(msgspec.json.encode(planned))
    else:
        _print_plan(planned)
    return 0


def _cost(started: CampaignStarted, recorded: ReferenceRecorded, trials: tuple[Trial, ...], folder: Path) -> Planned:
    """Reckon what a schedule would cost from what the references cost."""
    lives = sum(len(trial.crash_points) + 1 for trial in trials)
    return Planned(
        seed=started.seed,
        trials=trials,
        kills=sum(len(trial.crash_points) for trial in trials if trial.kind is TrialKind.FAULTED),
        points=len(recorded.points),
        expected_seconds=round(lives * recorded.reference.seconds / started.jobs, 1),
        expected_bytes=folder_bytes(folder / "trials" / "0001") * len(trials),
    )


def _has_only_kills(trials: tuple[Trial, ...]) -> bool:
    """Tell whether nothing but kills was drawn."""
    return all(trial.fault is FaultKind.KILL for trial in trials)


def _print_plan(planned: Planned) -> None:
    """Print a schedule for people."""
    click.echo(
        f"seed {planned.seed}: {planned.kills} {'kills' if _has_only_kills(planned.trials) else 'faults'}, "
        f"drawn from {planned.points} points that both references reached"
    )
    for trial in planned.trials:
        click.echo(f"trial {trial.number} ({trial.kind})")
        for life, point in enumerate(trial.crash_points, start=1):
            kill = "kill " if point.fault is FaultKind.KILL else ""
            click.echo(f"  life {life}: {kill}{point} [{point.expected_phase}]")
    size_mb = max(1.0, planned.expected_bytes / 1e6)
    click.echo(f"expected: about {planned.expected_seconds:.0f} s; with --keep, at most {size_mb:.0f} MB on the disk")

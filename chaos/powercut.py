"""The power is really cut: a campaign on file systems in image files, from what is asked to the report."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO

import click
import msgspec

from chaos.bounds import folder_bytes
from chaos.campaign import FIRST_FAULTED, Campaign
from chaos.errors import ChaosError, HarnessError
from chaos.executors.cutting import IMAGES
from chaos.executors.pool import LocalPool
from chaos.images import ImageKind, find_usable, parse_kind
from chaos.invocation import Asked, settle
from chaos.journal import (
    CampaignEnded,
    CampaignStarted,
    Event,
    PowerCutPlan,
    ReferenceRecorded,
    TrialFinished,
    TrialsPlanned,
    read_events,
)
from chaos.judging import complete
from chaos.lives.request import read_log
from chaos.model import Expect, FaultKind, Finding, Outcome, Trial, TrialKind, Verdict
from chaos.planners.cuts import crash_points, draw_cuts
from chaos.references import FIRST_REFERENCE
from chaos.reports.powercut import OnFileSystem, PowerCuts, model_states, print_powercuts
from chaos.reports.terminal import Progress
from chaos.runs import name_to_type, open_run, start_run, started_of
from chaos.verdict import is_as_expected, judge, merge

_RESULT: Final = "result.json"
_INTERRUPTED_STATUS: Final = 130
_STATUS: Final = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 4}
_ROOM_FACTOR: Final = 4


def read_kinds(text: str) -> tuple[ImageKind, ...]:
    """Read `ext4,ext4:noauto_da_alloc,xfs`, each once; options of one that has several are parted by `+`."""
    return tuple(dict.fromkeys(parse_kind(word.replace("+", ",")) for word in text.split(",")))


def require_usable(kinds: Sequence[ImageKind]) -> None:
    """Raise HarnessError where one of the file systems cannot be used here, saying why of each, and which can be."""
    found = find_usable(kinds)
    reasons: dict[str, list[str]] = {}
    for one in found:
        if not one.is_usable:
            reasons.setdefault(one.reason, []).append(one.kind)
    if not reasons:
        return
    message = "; ".join(f"{', '.join(names)} cannot be used here: {reason}" for reason, names in reasons.items())
    usable = ",".join(one.kind.replace(",", "+") for one in found if one.is_usable)
    raise HarnessError(message, hint=f"these can be used: --fs {usable}" if usable else "none of them can be used yet")


def run_powercut(asked: Asked, plan: PowerCutPlan, progress: TextIO) -> int:
    """Run a whole campaign of power cuts and report it; return the exit status."""
    scenario, settings = settle(asked)
    require_usable([parse_kind(kind) for kind in plan.kinds])
    folder, started = start_run(asked.root, scenario, settings)
    started = msgspec.structs.replace(started, power_cut=plan)
    error, status = "", 0
    try:
        with open_run(folder) as (journal, _):
            observer = Progress(progress)
            journal.append(started)
            observer.handle(started)
            campaign = PowerCutCampaign(folder, journal, (started,), observer.handle)
            campaign.limit(budget_s=settings.budget_s, max_bytes=settings.max_bytes, keep=settings.keep)
            campaign.run()
    except ChaosError as failure:
        error, status = str(failure), failure.exit_status
    except KeyboardInterrupt:
        error, status = "interrupted", _INTERRUPTED_STATUS
    finally:
        for images in (folder / "trials").glob(f"*/{IMAGES}"):  # of trials that were broken off
            shutil.rmtree(images, ignore_errors=True)
    reported = report_cuts(folder, is_json=asked.is_json, progress=progress, error=error)
    return status if error else reported


def is_power_cut(folder: Path) -> bool:
    """Tell whether a run is a campaign of power cuts."""
    return started_of(read_events(folder), folder).power_cut is not None


def report_cuts(folder: Path, *, is_json: bool, progress: TextIO, error: str = "") -> int:
    """Work the verdict out from the journal, keep and print the result; return the exit status.

    `error` is what broke the campaign off. Raises HarnessError where the result cannot be kept.
    """
    with open_run(folder) as (_, events):
        result = msgspec.structs.replace(judge_cuts(events, folder), error=error)
        try:
            (folder / _RESULT).write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
        except OSError as failure:
            message = f"{folder / _RESULT} cannot be written: {failure.strerror}"
            raise HarnessError(message, hint=f"free some space, then type: chaos judge {folder}") from failure
    if is_json:
        click.echo(msgspec.json.encode(result))
    if error:
        click.echo(f"Error: {error}", err=True)
    elif not is_json:
        print_powercuts(result, progress)
    return _exit_status(result)


def _exit_status(result: PowerCuts) -> int:
    """Return the exit status: a state that the model lacks is a failure of ours, whatever else was seen."""
    if result.model_lacks:
        return HarnessError.exit_status
    if result.expected is Verdict.FAIL:
        return 0 if result.as_expected else 1
    return _STATUS[result.verdict]


class PowerCutCampaign(Campaign):
    """A campaign whose faults are power cuts on images: the same places on each kind of image."""

    def _strike(self, pool: LocalPool, recorded: ReferenceRecorded) -> None:
        """Run the trials; every one is of a first life, which comes to each point of the reference."""
        trials = tuple(self._drawn(recorded))
        self._record(TrialsPlanned(trials=trials))
        self._execute(pool, trials, recorded.reference)

    def _drawn(self, recorded: ReferenceRecorded) -> Iterator[Trial]:
        """Yield a trial for each place and kind of image."""
        plan = self._started.power_cut
        assert plan is not None  # noqa: S101 - this class is made for a plan
        points = draw_cuts(recorded.points, plan.cuts, self._started.seed)
        every = (point for kind in plan.kinds for point in crash_points(points, kind))
        size = self._image_bytes()
        for number, point in enumerate(every, FIRST_FAULTED):
            trial = self._trial(number, TrialKind.FAULTED, (point,))
            yield msgspec.structs.replace(trial, image_bytes=size)

    def _image_bytes(self) -> int:
        """Return a size that no lineage fills: a few times all that the reference ever wrote, most of it a hole."""
        folder = self.trial_folder(FIRST_REFERENCE)
        written = sum(operation.size_bytes for operation in read_log(folder / "life-01"))
        return _ROOM_FACTOR * (written + folder_bytes(folder / "out"))


def judge_cuts(events: tuple[Event, ...], folder: Path) -> PowerCuts:
    """Judge a campaign of power cuts by its journal's events, each file system by itself."""
    started = started_of(events, folder)
    plan, scenario = started.power_cut, started.scenario
    assert plan is not None  # noqa: S101 - the caller knows which campaign it is
    ended = next((event for event in events if isinstance(event, CampaignEnded)), None)
    causes = ended.causes if ended is not None else ("the campaign was broken off",)
    each = tuple(_on_one(kind, started, events, folder, causes) for kind in plan.kinds)
    verdict = merge(one.verdict for one in each)
    wanted = scenario.expect.verdicts.get(FaultKind.POWER_LOSS, scenario.expect.verdict)
    expect = Expect(verdict=wanted, findings=scenario.expect.findings, allow=scenario.expect.allow)
    return PowerCuts(
        verdict=verdict,
        as_expected=is_as_expected(expect, verdict, [finding for one in each for finding in one.findings]),
        expected=wanted,
        seed=started.seed,
        scenario=scenario.name,
        claim=scenario.claim,
        target=shlex.join(scenario.target.command),
        file_systems=each,
        elapsed_s=round(ended.elapsed_s, 3) if ended is not None else 0.0,
        run_dir=str(folder),
    )


def _on_one(
    kind: str, started: CampaignStarted, events: tuple[Event, ...], folder: Path, causes: tuple[str, ...]
) -> OnFileSystem:
    """Judge the cuts on one file system, beside the control and the canary."""
    assert started.power_cut is not None  # noqa: S101 - the caller knows which campaign it is
    asked = started.power_cut.cuts
    outcomes = [event.outcome for event in events if isinstance(event, TrialFinished)]
    mine = [outcome for outcome in outcomes if any(p.profile == kind for p in outcome.trial.crash_points)]
    cuts = [outcome.cut for outcome in mine if outcome.cut is not None]
    causes += tuple(f"whether the model has what was left: {cut.undecided}" for cut in cuts if cut.undecided)
    recorded = next((event for event in events if isinstance(event, ReferenceRecorded)), None)
    verdict, doubts = Verdict.INCONCLUSIVE, causes
    findings: tuple[Finding, ...] = ()
    if recorded is not None:
        control = [outcome for outcome in outcomes if outcome.trial.kind is TrialKind.CONTROL]
        judgement = judge(
            complete(recorded.reference, tuple(outcomes)),
            (*control, *mine),
            next((outcome for outcome in outcomes if outcome.trial.kind is TrialKind.CANARY), None),
            started.scenario.target,
            run_name=name_to_type(folder),
            kills_requested=asked,
            kinds=(FaultKind.POWER_LOSS,),
            strict=started.strict,
            causes=causes,
        )
        verdict, findings, doubts = judgement.verdict, judgement.findings, judgement.inconclusive
    return OnFileSystem(
        file_system=kind,
        verdict=verdict,
        cuts_requested=asked,
        cuts=len(cuts),
        states_distinct=len({cut.digest for cut in cuts}),
        nothing_lost=sum(cut.is_all_there for cut in cuts),
        model_states=model_states([cut.set_log10 for cut in cuts if cut.set_log10 is not None]),
        model_lacks=tuple(_lacking(mine)),
        findings=findings,
        inconclusive=doubts,
    )


def _lacking(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Say of each state that the model lacks where it was seen, and why the model lacks it."""
    for outcome in outcomes:
        if outcome.cut is not None and outcome.cut.lacking:
            (point,) = outcome.trial.crash_points
            yield f"trial {outcome.trial.number}, {point}: the model lacks this state: {outcome.cut.lacking}"

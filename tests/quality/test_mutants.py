"""Mutants: with a check disabled, a kill's evidence falsified, or a strike that does nothing, no campaign may pass.

Recorded campaigns are judged again with one thing changed; those that need it are run here with one part replaced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest
from msgspec.structs import replace

from chaos.campaign import Campaign
from chaos.checks import ALL_CHECKS, Check
from chaos.executors.bench import Bench
from chaos.journal import CampaignStarted, Event, TrialFinished
from chaos.judging import Judged, judge_events
from chaos.model import (
    CheckName,
    CheckResult,
    CheckStatus,
    Evidence,
    FaultKind,
    LifeEnd,
    LifeRecord,
    Outcome,
    Reference,
    Target,
    TrialKind,
    TrialSpec,
    Verdict,
)
from chaos.runs import open_run, start_run
from chaos.scenario import scenario_from_command
from chaos.settings import SettingsLayer, resolve_settings
from chaos.tables import FaultSpec

KILLS = 6
GLOBS = {"checkpoints": ("{out}/ckpt*.json", "{out}/ckpt*.safetensors"), "final": ("{out}/final.json",)}


class Recorded(NamedTuple):
    """A campaign's folder and its journal's events."""

    folder: Path
    events: tuple[Event, ...]

    def judged(self, **options: Any) -> Judged:
        """Judge it as it was recorded."""
        return judge_events(self.events, self.folder, **options)

    def with_outcomes(self, change: Callable[[Outcome], Outcome | None]) -> Recorded:
        """Return it with each outcome changed, or left out where None is returned."""
        events: list[Event] = []
        for event in self.events:
            if isinstance(event, TrialFinished):
                outcome = change(event.outcome)
                events += [] if outcome is None else [TrialFinished(outcome=outcome)]
            else:
                events.append(event)
        return self._replace(events=tuple(events))


class InProcessPool:
    """Runs each trial in this process, where its parts can be replaced by a test."""

    def __init__(self, jobs: int) -> None:
        """Take the place of the pool of processes."""
        self.jobs = jobs

    def run(self, specs: Iterable[tuple[TrialSpec, Path]]) -> Iterator[Outcome]:
        """Run one trial after the other."""
        for spec, folder in specs:
            folder.mkdir(parents=True, exist_ok=True)
            with Bench() as bench:
                yield bench.run(spec, folder.absolute())

    def __enter__(self) -> Self:
        """Return the pool itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing to end."""


def _record(
    root: Path,
    command: list[str],
    *,
    kills: int = KILLS,
    strict: bool = False,
    fault: FaultKind = FaultKind.KILL,
) -> Recorded:
    """Run a campaign with one kind of fault in this process."""
    scenario = scenario_from_command(tuple(command), **GLOBS, ignore=(), step=None, saved=None)
    scenario = replace(scenario, faults=(FaultSpec(kind=fault),))
    settings = resolve_settings(SettingsLayer(kills=kills, seed=5, jobs=1, strict=strict), scenario)
    folder, started = start_run(root, scenario, settings)
    with open_run(folder) as (journal, _):
        journal.append(started)
        seen: list[Event] = [started]
        Campaign(folder, journal, (started,), seen.append).run()
    return Recorded(folder=folder, events=tuple(seen))


@pytest.fixture(scope="module")
def in_process() -> Iterator[None]:
    """Let campaigns run their trials in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chaos.campaign.LocalPool", InProcessPool)
        yield


@pytest.fixture(scope="module")
def good(in_process: None, tmp_path_factory: pytest.TempPathFactory, command_of: Callable[..., list[str]]) -> Recorded:
    """Return a campaign on a saver that does everything right."""
    _ = in_process
    return _record(tmp_path_factory.mktemp("good"), command_of("atomic"))


def test_unchanged_record_passes(good: Recorded) -> None:
    """What the mutants below start from passes, with all kills landed."""
    judgement = good.judged().judgement
    assert (judgement.verdict, judgement.kills_landed) == (Verdict.PASS, KILLS), judgement.inconclusive
    assert judgement.inconclusive == ()


# --- the checks ---------------------------------------------------------------------------------------

# Each check, a script whose bug is that check's business, and how many kills it takes to show.
FOUND_BY = {
    CheckName.NO_VALID_CHECKPOINT: ("deletes_first", 8),
    CheckName.ACKNOWLEDGED_LOST: ("announces_early", 8),
    CheckName.RESUME_CRASHED: ("in_place", 8),
    CheckName.LOST_WORK: ("uses_older", 8),
    CheckName.DID_NOT_FINISH: ("skips_the_end", 8),
    CheckName.SILENT_DIVERGENCE: ("forgets_generator", 8),
    CheckName.LEAKED_FILES: ("leaks_temporaries", 20),
}
# The same of checks that other faults than kills are for.
FOUND_BY_OTHERS = {
    CheckName.FAILED_SAVE_IGNORED: (("swallows_errors", "once"), FaultKind.DISK_FULL),
    CheckName.CORRUPTION_ACCEPTED: (("rots", "bare"), FaultKind.BIT_FLIP),
}
# These are found by campaigns of their own in the tables of targets, which take long: their records are made up.
MADE_UP = {
    CheckName.RESUME_HUNG,
    CheckName.DATA_REPEATED,
    CheckName.DATA_SKIPPED,
    CheckName.ORPHAN_PROCESSES,
    CheckName.SAVING_CHANGES_TRAINING,
    CheckName.UNSAFE_CHECKPOINT,
}


def _blind(name: CheckName) -> dict[CheckName, Check]:
    """Return all checks, one of which sees nothing."""

    def sees_nothing(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
        _ = reference, outcomes, target
        return CheckResult(check=name, status=CheckStatus.PASSED)

    return {**ALL_CHECKS, name: sees_nothing}


def test_every_check_has_a_mutant() -> None:
    """No check is forgotten below."""
    assert set(FOUND_BY) | set(FOUND_BY_OTHERS) | MADE_UP == set(ALL_CHECKS) == set(CheckName)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", FOUND_BY)
def test_disabled_check_changes_the_outcome(
    name: CheckName, tmp_path: Path, command_of: Callable[..., list[str]]
) -> None:
    """A bug that a check must find is not found without it, and nothing else reports it under that name."""
    script, kills = FOUND_BY[name]
    recorded = _record(tmp_path, command_of(script), kills=kills, strict=True)
    judgement = recorded.judged().judgement
    assert judgement.verdict is Verdict.FAIL
    assert name in {finding.check for finding in judgement.findings}
    blind = recorded.judged(checks=_blind(name)).judgement
    assert name not in {finding.check for finding in blind.findings}
    assert len(blind.findings) < len(judgement.findings)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", FOUND_BY_OTHERS)
def test_disabled_check_of_another_fault_changes_the_outcome(
    name: CheckName, tmp_path: Path, command_of: Callable[..., list[str]]
) -> None:
    """A bug that a check must find is not found without it, and nothing else reports it under that name."""
    words, fault = FOUND_BY_OTHERS[name]
    recorded = _record(tmp_path, command_of(*words), fault=fault)
    judgement = recorded.judged().judgement
    assert judgement.verdict is Verdict.FAIL
    assert name in {finding.check for finding in judgement.findings}
    blind = recorded.judged(checks=_blind(name)).judgement
    assert name not in {finding.check for finding in blind.findings}
    assert len(blind.findings) < len(judgement.findings)


def _changed_last_life(recorded: Recorded, **changes: Any) -> Recorded:
    """Return a campaign with something else in the last life of every faulted lineage."""

    def change(outcome: Outcome) -> Outcome:
        if outcome.trial.kind is not TrialKind.FAULTED:
            return outcome
        return replace(outcome, lives=(*outcome.lives[:-1], replace(outcome.lives[-1], **changes)))

    return recorded.with_outcomes(change)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (CheckName.RESUME_HUNG, {"end": LifeEnd.DEADLINE, "exit_status": None, "signal": 9}),
        (CheckName.ORPHAN_PROCESSES, {"orphans": ("python worker.py",)}),
    ],
)
def test_disabled_check_of_a_made_up_record(good: Recorded, name: CheckName, changes: dict[str, Any]) -> None:
    """The only check that sees it makes it a failure; without that check it is none."""
    recorded = _changed_last_life(good, **changes)
    judgement = recorded.judged().judgement
    assert (judgement.verdict, {finding.check for finding in judgement.findings}) == (Verdict.FAIL, {name})
    assert recorded.judged(checks=_blind(name)).judgement.verdict is not Verdict.FAIL


# --- the evidence of kills ------------------------------------------------------------------------------


def _kills(recorded: Recorded) -> list[tuple[int, int]]:
    """Return the trial and the life of every kill of a faulted lineage."""
    outcomes = [event.outcome for event in recorded.events if isinstance(event, TrialFinished)]
    faulted = [outcome for outcome in outcomes if outcome.trial.kind is TrialKind.FAULTED]
    return [(o.trial.number, life.number) for o in faulted for life in o.lives if life.evidence]


def _falsified(recorded: Recorded, kill: tuple[int, int], change: Callable[[LifeRecord], LifeRecord]) -> Recorded:
    """Return a campaign with one killed life changed."""

    def change_one(outcome: Outcome) -> Outcome:
        if outcome.trial.number != kill[0]:
            return outcome
        return replace(outcome, lives=tuple(change(o) if o.number == kill[1] else o for o in outcome.lives))

    return recorded.with_outcomes(change_one)


def _with_evidence(life: LifeRecord, **changes: Any) -> LifeRecord:
    """Return a life whose kill has other evidence."""
    assert isinstance(life.evidence, Evidence)
    return replace(life, evidence=replace(life.evidence, **changes))


@pytest.mark.parametrize(
    "change",
    [
        lambda life: replace(life, evidence=None),
        lambda life: _with_evidence(life, was_alive=False),
        lambda life: _with_evidence(life, root_signal=0),
        lambda life: _with_evidence(life, root_signal=15),
        lambda life: replace(life, evidence=None, end=LifeEnd.EXITED, exit_status=0, signal=None),
        lambda life: replace(life, evidence=None, end=LifeEnd.SIGNALLED, signal=9),
    ],
    ids=["no-evidence", "was-not-alive", "no-signal", "sigterm", "ended-by-itself", "killed-by-another"],
)
def test_kill_without_evidence_is_no_pass(good: Recorded, change: Callable[[LifeRecord], LifeRecord]) -> None:
    """For each kill in turn: if it is not proven, the campaign does not pass, and counts one kill less."""
    kills = _kills(good)
    assert len(kills) == KILLS
    for kill in kills:
        judgement = _falsified(good, kill, change).judged().judgement
        assert judgement.verdict is not Verdict.PASS, kill
        assert judgement.kills_landed == KILLS - 1


def test_lineage_that_is_missing_is_no_pass(good: Recorded) -> None:
    """For each faulted lineage in turn: without its outcome the campaign does not pass."""
    for number in {number for number, _ in _kills(good)}:
        without = good.with_outcomes(lambda outcome, n=number: None if outcome.trial.number == n else outcome)
        assert without.judged().judgement.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("kind", [TrialKind.CONTROL, TrialKind.CANARY])
def test_companion_that_is_missing_is_inconclusive(good: Recorded, kind: TrialKind) -> None:
    """Without its control, or its canary, a campaign proves nothing."""
    without = good.with_outcomes(lambda outcome: None if outcome.trial.kind is kind else outcome)
    judgement = without.judged().judgement
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert any(kind in sentence.lower() for sentence in judgement.inconclusive)


def test_campaign_that_did_not_end_is_inconclusive(good: Recorded) -> None:
    """Every prefix of the journal is inconclusive; only the whole passes."""
    for length in range(1, len(good.events)):
        events = good.events[:length]
        assert isinstance(events[0], CampaignStarted)
        assert judge_events(events, good.folder).judgement.verdict is Verdict.INCONCLUSIVE


# --- strikes and planted bugs that do nothing --------------------------------------------------------------


@pytest.mark.usefixtures("in_process")
def test_strike_that_does_nothing_is_no_pass(
    tmp_path: Path, command_of: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no operation is ever taken for the crash point, no kill lands, and the campaign is inconclusive."""
    monkeypatch.setattr("chaos.lives.watch._is_at", lambda *_: False)
    judgement = _record(tmp_path, command_of("atomic"), kills=1).judged().judgement
    assert (judgement.verdict, judgement.kills_landed) == (Verdict.INCONCLUSIVE, 0)
    assert any("Only 0 of the 1 kills" in sentence for sentence in judgement.inconclusive)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("fault", "part", "result"),
    [
        (FaultKind.IO_ERROR, "chaos.faults.injection.Injector.answer_to", None),
        (FaultKind.BIT_FLIP, "chaos.executors.aftermath.damage", None),
    ],
)
def test_fault_that_does_nothing_is_no_pass(
    fault: FaultKind,
    part: str,
    result: object,
    tmp_path: Path,
    command_of: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error that is never answered, or a checkpoint that is not damaged, has not landed, however often drawn."""
    monkeypatch.setattr(part, lambda *_, **__: result)
    judgement = _record(tmp_path, command_of("atomic"), kills=1, fault=fault).judged().judgement
    assert (judgement.verdict, judgement.kills_landed) == (Verdict.INCONCLUSIVE, 0)
    assert f"Only 0 of the 1 faults ({fault}) asked for have landed." in judgement.inconclusive


@contextlib.contextmanager
def _nothing_truncated(*_: object) -> Iterator[None]:
    """Plant nothing."""
    yield


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("part", "replacement", "said"),
    [
        ("truncated_checkpoints", _nothing_truncated, "checkpoints destroyed in its first life"),
        ("flip_final_bit", lambda *_: None, "a bit flipped in its final file"),
    ],
)
def test_bug_that_is_not_planted_is_inconclusive(
    part: str,
    replacement: Callable[..., Any],
    said: str,
    tmp_path: Path,
    command_of: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A canary without its bug looks like checks that see nothing: no pass."""
    monkeypatch.setattr(f"chaos.executors.lineage.{part}", replacement)
    judgement = _record(tmp_path, command_of("atomic"), kills=1).judged().judgement
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert any(said in sentence for sentence in judgement.inconclusive)

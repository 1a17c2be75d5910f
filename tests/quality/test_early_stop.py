"""A recovery that is stopped early would have ended as its twin did, for good and for bad."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chaos.address import TICK
from chaos.campaign import FIRST_FAULTED, Campaign
from chaos.early_stop import Twins, with_end_of_twin
from chaos.executors.pool import LocalPool
from chaos.journal import ReferenceRecorded, TrialFinished, read_events
from chaos.model import CrashPoint, FaultKind, LifeEnd, Outcome, Trial, TrialKind
from chaos.runs import open_run
from chaos.scenario import load_scenario, shipped_scenarios
from chaos.stage import Stage
from chaos.verdict import violations_of

DEADLINE_S = 240
GLOBS = ("--checkpoints", "{out}/ckpt.json", "--final", "{out}/final.json")
KILLS = 60
# Kills between saves leave the same files behind, and so twins.
ONLY_IN_STEPS = "\n[schedule]\nphases = { step = 1.0 }\n"
SAVE, BETWEEN_SAVES = 3, 25


def finished(folder: Path) -> dict[int, Outcome]:
    """Return the outcomes of a run by trial."""
    events = read_events(folder)
    return {event.outcome.trial.number: event.outcome for event in events if isinstance(event, TrialFinished)}


def stopped(outcomes: dict[int, Outcome]) -> Iterator[tuple[Outcome, Outcome]]:
    """Yield each lineage that was stopped early with its twin."""
    for outcome in outcomes.values():
        if outcome.lives[-1].end is LifeEnd.STOPPED:
            assert outcome.twin is not None
            yield outcome, outcomes[outcome.twin]


def test_a_correct_script_passes_either_way(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """Some recoveries are stopped, none of them counts as verified, and nothing is found or doubted."""
    words = (*GLOBS, "--", *command_of("epochs"))
    early = run_campaign(tmp_path, "--stop-early", *words, seed=1, kills=KILLS)
    assert (early.result["verdict"], early.result["kills_landed"]) == ("pass", KILLS), early.explain()
    outcomes = finished(tmp_path / "runs" / "latest")
    pairs = list(stopped(outcomes))
    assert len(pairs) == early.result["recoveries_stopped_early"] > 0
    unverified = sum(outcome.kills_landed for outcome, _ in pairs)
    assert early.result["verified_kills"] == KILLS - unverified
    assert early.result["coverage"]["kills_bounding"] == KILLS - unverified
    for outcome, twin in pairs:
        one, other = outcome.lives[-1], twin.lives[-1]
        assert one.files == other.files != ""
        assert one.steps == len(one.step_digests) == 2
        assert one.step_digests == other.step_digests[:2]
        assert (other.end, other.exit_status) == (LifeEnd.EXITED, 0)
        assert not twin.differences


def test_nothing_is_stopped_unless_it_is_asked_for(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """A verified kill is one whose recovery ran to its end: that is the default."""
    campaign = run_campaign(tmp_path, *GLOBS, "--", *command_of("epochs"), seed=1, kills=KILLS)
    assert campaign.result["verdict"] == "pass", campaign.explain()
    assert campaign.result["recoveries_stopped_early"] == 0
    assert campaign.result["verified_kills"] == KILLS
    assert not any(life.files for outcome in finished(tmp_path / "runs" / "latest").values() for life in outcome.lives)


def test_what_goes_wrong_is_found_either_way(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """The same verdict, the same findings, though some recoveries were stopped."""
    words = (*GLOBS, "--", *command_of("epochs", "--wrong"))
    plain = run_campaign(tmp_path, *words, seed=1, kills=KILLS)
    early = run_campaign(tmp_path, "--stop-early", *words, seed=1, kills=KILLS)
    assert early.result["verdict"] == plain.result["verdict"] == "fail", early.explain()
    assert early.findings == plain.findings == {"silent_divergence"}
    assert early.result["recoveries_stopped_early"] > 0


def test_a_campaign_that_was_broken_off_goes_on_stopping(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]], chaos_command: Path
) -> None:
    """What ran to its end before is a twin to what comes after, and the verdict is the same; so it is when judged."""
    words = (*GLOBS, "--", *command_of("epochs", "--wrong"))
    whole = run_campaign(tmp_path, "--stop-early", *words, seed=1, kills=KILLS)
    run = tmp_path / "runs" / (tmp_path / "runs" / "latest").readlink()
    journal = run / "journal.ndjson"
    lines = journal.read_bytes().splitlines(keepends=True)
    ordinal = next(place for place, line in enumerate(lines) if b'"end":"stopped"' in line)
    results = []
    for kept, command in ((lines, "judge"), (lines[:ordinal], "run")):
        journal.write_bytes(b"".join(kept))
        words = ("judge", str(run)) if command == "judge" else ("run", "--continue", str(run))
        ended = subprocess.run(
            [str(chaos_command), *words, "--json"], capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        results.append(json.loads(ended.stdout))
    for result in results:
        assert result["verdict"] == "fail"
        assert {finding["check"] for finding in result["findings"]} == whole.findings
        assert result["recoveries_stopped_early"] == whole.result["recoveries_stopped_early"] > 0


@pytest.fixture(name="explore")
def _explore(
    tmp_path: Path, chaos_command: Path, command_of: Callable[..., list[str]]
) -> Callable[..., dict[str, Any]]:
    """Give a function that explores the script, with options and arguments, and returns the JSON object."""

    def explore(*options: str, arguments: tuple[str, ...] = ()) -> dict[str, Any]:
        words = ["explore", "--json", "--runs", str(tmp_path / "runs"), "--depth", "1", "--seed", "1", *options]
        ended = subprocess.run(
            [str(chaos_command), *words, *GLOBS, "--", *command_of("epochs", *arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    return explore


def test_a_bug_that_shows_only_in_later_epochs_is_still_found(
    tmp_path: Path, explore: Callable[..., dict[str, Any]]
) -> None:
    """Its first steps are the reference's, digest by digest; recoveries that are intact began from other files."""
    options = ("--saves", "2", "--faults", "kill,disk_full")
    plain = explore(*options, arguments=("--wrong",))
    early = explore("--stop-early", *options, arguments=("--wrong",))
    assert early["verdicts"] == plain["verdicts"] == {"kill": "fail", "disk_full": "fail"}
    found, found_plain = ({(f["check"], f["fault"]) for f in each["findings"]} for each in (early, plain))
    assert found == found_plain == {("silent_divergence", "kill"), ("silent_divergence", "disk_full")}
    assert early["recoveries_stopped_early"] > 0
    run = tmp_path / "runs" / "latest"
    reference = [
        line.removeprefix("tick ")
        for line in (run / "trials" / "0001" / "life-01" / "ticks.log").read_text().splitlines()
        if line.startswith("tick ")
    ]
    outcomes = finished(run)
    assert any(twin.differences for _, twin in stopped(outcomes))
    ended = [outcome for outcome in outcomes.values() if outcome.lives[-1].files and outcome.twin is None]
    diverged = [outcome.lives[-1] for outcome in ended if outcome.differences]
    intact = {outcome.lives[-1].files for outcome in ended if not outcome.differences}
    assert intact
    assert not {life.files for life in diverged} & intact
    for life in diverged:
        at = reference.index(life.step_digests[0])
        assert list(life.step_digests[:2]) == reference[at : at + 2]


@pytest.mark.parametrize("name", ["durable", "durable_epoch"])
def test_a_campaign_on_the_trainer_agrees_with_runs_to_the_end(
    name: str, tmp_path: Path, run_campaign: Callable[..., Any], chaos_command: Path
) -> None:
    """Each lineage that was stopped is run again to its end, where it has its twin's files; nothing is found."""
    scenario = tmp_path / f"{name}.toml"
    shipped = (Path(__file__).parents[2] / "scenarios" / scenario.name).read_text(encoding="utf-8")
    scenario.write_text(shipped + ONLY_IN_STEPS, encoding="utf-8")
    campaign = run_campaign(tmp_path, str(scenario), "--stop-early", "--lives", "warm", seed=1, kills=16)
    assert (campaign.status, campaign.result["verdict"]) == (0, "pass"), campaign.explain()
    run = tmp_path / "runs" / "latest"
    pairs = list(stopped(finished(run)))
    assert len(pairs) == campaign.result["recoveries_stopped_early"] > 0
    for outcome, _ in pairs:
        again = subprocess.run(
            [str(chaos_command), "replay", "--json", f"{run}/{outcome.trial.number}"],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        replayed = json.loads(again.stdout)
        assert (replayed["is_same"], replayed["findings"]) == (True, []), again.stderr


def _points(recorded: ReferenceRecorded, kind: FaultKind) -> CrashPoint:
    """Return a crash point of a kind that leaves much to do: between two saves, or of an error in a save's write."""
    for point in recorded.points:
        address = point.address
        at = CrashPoint(address=address, expected_phase=point.phase, fault=kind)
        if kind.is_error and address.save == SAVE and address.call == "write" and point.end:
            middle = (point.start + point.end) // 2 if kind is FaultKind.SHORT_WRITE else None
            return replace(at, is_sticky=middle is None, tear_offset=middle)
        if not kind.is_error and address.call == TICK and address.tick == BETWEEN_SAVES:
            return at
    raise AssertionError(kind)


@pytest.mark.parametrize("name", shipped_scenarios())
def test_every_shipped_scenario_agrees_with_runs_to_the_end(name: str, tmp_path: Path) -> None:
    """Under each of its kinds of fault a recovery that is stopped early breaks the rules that it breaks at its end.

    Three lineages with the same fault: one is the twin, one may be stopped beside it, one runs to its end.
    """
    stage = Stage(name, tmp_path)
    scenario, reference = load_scenario(name), stage.recorded.reference
    num_stopped = 0
    with open_run(stage.folder) as (journal, events), LocalPool(2) as pool:
        campaign = Campaign(stage.folder, journal, events, lambda _: None)
        for place, kind in enumerate(scenario.kinds):
            point = _points(stage.recorded, kind)
            numbers = range(FIRST_FAULTED + 3 * place, FIRST_FAULTED + 3 * place + 3)
            trials = [Trial(number=n, kind=TrialKind.FAULTED, crash_points=(point,), hash_seed=n) for n in numbers]
            specs = [replace(campaign.spec(trial, reference), probe_budget=100.0) for trial in trials]
            folders = [campaign.trial_folder(number) for number in numbers]
            both = pool.run([(replace(specs[0], twins=()), folders[0]), (specs[1], folders[1])])
            twin, whole = sorted(both, key=lambda outcome: outcome.trial.number)
            twins = Twins([twin]).under(kind)
            (early,) = pool.run([(replace(specs[2], twins=twins), folders[2])])
            assert (early.twin is not None) == (early.lives[-1].end is LifeEnd.STOPPED)
            assert early.twin in {None, twin.trial.number}
            num_stopped += early.twin is not None
            settled = with_end_of_twin(early, {twin.trial.number: twin})
            broken = [
                {violation.check for violation in violations_of(reference, (outcome,), scenario.target)}
                for outcome in (settled, whole)
            ]
            assert broken[0] == broken[1], (early, whole)
    assert num_stopped > 0 or all(kind.is_error for kind in scenario.kinds)


def test_an_exploration_stops_early_too(explore: Callable[..., dict[str, Any]]) -> None:
    """Of recoveries after errors many begin from the same files; the verdict is the same without early stop."""
    options = ("--saves", "2", "--faults", "disk_full")
    plain, early = explore(*options), explore("--stop-early", *options)
    assert early["verdict"] == plain["verdict"] == "pass", early
    assert plain["recoveries_stopped_early"] == 0
    assert early["recoveries_stopped_early"] == early["states_early_stopped"] > 0

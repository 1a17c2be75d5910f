"""What a user types and sees: reports, replay, judge, dry run; JSON by its contract; the same seed, the same kills."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.cli import main as shell
from chaos.journal import TrialFinished, TrialsPlanned, read_events
from chaos.model import Verdict
from chaos.reports.night import Campaigned, Night, night_in_words

HERE = Path(__file__).parent
SMALL = HERE / "targets" / "small.py"
DEADLINE_S = 120
SEED = 11
PHASES = {"startup", "step", "save", "recovery", "finish"}
CHECKS = {
    "no_valid_checkpoint", "acknowledged_lost", "resume_crashed", "resume_hung", "lost_work", "did_not_finish",
    "silent_divergence", "saving_changes_training", "orphan_processes", "leaked_files", "unsafe_checkpoint",
    "failed_save_ignored", "corruption_accepted", "data_repeated", "data_skipped",
}  # fmt: skip
CONTRACT: dict[str, type | tuple[type, ...]] = {
    "schema": int, "verdict": str, "as_expected": bool, "seed": int, "target": str, "kills_requested": int,
    "kills_landed": int, "kills_by_phase": dict, "trials": int, "findings": list, "checks": dict, "reference": dict,
    "elapsed_s": float, "verified_kills_per_hour": float, "run_dir": str, "coverage": dict,
}  # fmt: skip
COVERAGE = {
    "points_known": int, "points_hit": int, "by_phase": dict, "by_call": dict, "tears": dict, "kills_unmatched": int,
    "kills_bounding": int,
}  # fmt: skip
FINDING = {"id": str, "check": str, "severity": str, "trial": int, "crash_point": str, "detail": str, "replay": str}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the campaigns of this file keep their runs."""
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def chaos(chaos_command: Path, place: Path) -> Run:
    """Return a function that runs the installed command there."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(chaos_command), *words], cwd=place, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )

    return run


def _campaign(name: str, *flags: str, options: tuple[str, ...] = (), seed: int = SEED, kills: int = 6) -> list[str]:
    """Return the words that run a campaign on the small target and keep it under a name."""
    globs = ["--checkpoints", "{out}/ckpt.json", "--final", "{out}/final.json"]
    settings = ["--runs", name, "--seed", str(seed), "--kills", str(kills), "--jobs", "2", *options]
    return ["run", *settings, *globs, "--", sys.executable, str(SMALL), "{out}", *flags]


@pytest.fixture(scope="module")
def ended(chaos: Run) -> dict[str, subprocess.CompletedProcess[str]]:
    """Return one campaign of each verdict, for people to read."""
    flags = {"pass": (), "fail": ("--in-place",), "inconclusive": ("--random",)}
    return {verdict: chaos(*_campaign(verdict, *flags[verdict])) for verdict in flags}


def _normalised(text: str) -> str:
    """Return output without what differs from run to run: times, ids, digests, paths; trials sorted."""
    text = text.replace(str(SMALL), "SMALL").replace(sys.executable, "PYTHON")
    text = re.sub(r"\d{8}-\d{6}-[0-9a-f]{4}", "RUN", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "DIGEST", text)
    text = re.sub(r"/\S*/commands\d+", "PLACE", text)
    text = re.sub(r"\b[\d,]+(\.\d+)? s\b", "T s", text)
    text = re.sub(r"[\d,]+ an hour", "N an hour", text)
    text = re.sub(r"about \d+ s; with --keep, at most \d+ MB", "about T s; with --keep, at most N MB", text)
    text = re.sub(r"\[\d+/(\d+) kills\]", r"[n/\1 kills]", text)
    head, *lines = text.splitlines()
    trials = sorted(line for line in lines if re.match(r"trial \d+ \((canary|control|faulted)\): ", line))
    others = [line for line in lines if line not in trials]
    return "\n".join([head, *trials, *others]) + "\n"


def _assert_snapshot(name: str, text: str) -> None:
    """Compare with the stored snapshot; where it is missing, store this one and fail."""
    path = HERE / "snapshots" / f"{name}.txt"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path.name} was missing and has been written: read it, and run again")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("verdict", "status"), [("pass", 0), ("fail", 1), ("inconclusive", 4)])
def test_report(ended: dict[str, subprocess.CompletedProcess[str]], verdict: str, status: int) -> None:
    """The report for people, its exit status, and the seed first and last; nothing is on standard output."""
    result = ended[verdict]
    assert (result.returncode, result.stdout) == (status, "")
    lines = result.stderr.splitlines()
    assert lines[0].endswith(f"seed {SEED}")
    assert lines[-1] == f"seed {SEED}"
    _assert_snapshot(f"report_{verdict}", _normalised(result.stderr))


def test_dry_run(chaos: Run) -> None:
    """A dry run prints the schedule that the real run then follows, and kills nothing of it."""
    plain = chaos(*_campaign("dry", options=("--dry-run",)))
    assert plain.returncode == 0
    _assert_snapshot("dry_run", _normalised(plain.stdout))
    planned = json.loads(chaos(*_campaign("dry", options=("--dry-run", "--json"))).stdout)
    assert (planned["seed"], planned["kills"]) == (SEED, 6)


def test_schedule_of_a_dry_run_is_that_of_the_run(
    chaos: Run, place: Path, ended: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    """What the dry run planned is what the campaign with the same seed did."""
    assert ended["pass"].returncode == 0
    chaos(*_campaign("again", options=("--dry-run",)))
    assert _schedule(place / "again") == _schedule(place / "pass")


def test_list(chaos: Run) -> None:
    """The list of scenarios with their claims."""
    _assert_snapshot("list", chaos("list").stdout)


def test_nightly_table() -> None:
    """One line a campaign, what was not reached, what was kept, and the seed last."""
    good = Campaigned(
        scenario="durable", seed=1, verdict=Verdict.PASS, status=0, kills_landed=10, findings=(), elapsed_s=31.2
    )
    bad = Campaigned(
        scenario="half", seed=2, verdict=Verdict.PASS, status=1, kills_landed=10, findings=(), elapsed_s=30.1, run="ID"
    )
    found = Campaigned(
        scenario="in_place",
        seed=3,
        verdict=Verdict.FAIL,
        status=0,
        kills_landed=10,
        findings=("no_valid_checkpoint", "resume_crashed"),
        elapsed_s=28.0,
    )
    broken = Campaigned(
        scenario="minimind", seed=4, verdict=None, status=3, kills_landed=0, findings=(), elapsed_s=0.1, error="no disk"
    )
    night = Night(
        seed=7, budget_s=120, elapsed_s=89.4, status=3, campaigns=(good, bad, found, broken), not_run=("forget_rng",)
    )
    _assert_snapshot("nightly", night_in_words(night) + "\n")


def _only_run(folder: Path) -> Path:
    """Return the newest run below a folder."""
    return folder / (folder / "latest").readlink()


def _schedule(folder: Path) -> list[Any]:
    """Return all trials that a run planned."""
    return [e.trials for e in read_events(_only_run(folder)) if isinstance(e, TrialsPlanned)]


def _crash_states(folder: Path) -> dict[int, list[str]]:
    """Return the digests of the crash states of each trial of a run."""
    outcomes = [event.outcome for event in read_events(_only_run(folder)) if isinstance(event, TrialFinished)]
    return {outcome.trial.number: [life.state_digest for life in outcome.lives] for outcome in outcomes}


def test_json_keeps_its_contract(chaos: Run, place: Path, ended: dict[str, subprocess.CompletedProcess[str]]) -> None:
    """`chaos judge --json` of the failing run has every promised key, with its type, and equals `result.json`."""
    assert ended["fail"].returncode == 1
    judged = chaos("judge", "latest", "--runs", "fail", "--json")
    result = json.loads(judged.stdout)
    assert judged.stdout.count("\n") == 1
    for key, kind in CONTRACT.items():
        assert isinstance(result[key], kind), key
    assert set(result["kills_by_phase"]) == PHASES
    assert set(result["checks"]) == CHECKS
    assert set(result["checks"].values()) <= {"passed", "failed", "not_run"}
    assert result["reference"].keys() >= {"deterministic", "seconds", "final_digest"}
    _assert_coverage(result["coverage"], result["kills_landed"])
    assert result["findings"]
    for finding in result["findings"]:
        for key, kind in FINDING.items():
            assert isinstance(finding[key], kind), key
        assert finding["step"] is None or isinstance(finding["step"], int)
    assert result == json.loads((_only_run(place / "fail") / "result.json").read_text(encoding="utf-8"))


def _assert_coverage(coverage: dict[str, Any], kills: int) -> None:
    """Hold the coverage of a run with findings to its contract: counts that fit together, and no bound."""
    for key, kind in COVERAGE.items():
        assert isinstance(coverage[key], kind), key
    assert set(coverage["by_phase"]) == PHASES
    assert coverage["failure_bound"] is None
    for key in ("known", "hit"):
        assert coverage[f"points_{key}"] == sum(count[key] for count in coverage["by_phase"].values())
        assert coverage["by_phase"]["save"][key] == sum(count[key] for count in coverage["by_call"].values())
    assert 0 < coverage["points_hit"] <= kills - coverage["kills_unmatched"]


def test_coverage_of_a_pass(place: Path, ended: dict[str, subprocess.CompletedProcess[str]]) -> None:
    """Each of six kills without a failure is a known point, and together they bound the share of failures by 3/6."""
    assert ended["pass"].returncode == 0
    text = (_only_run(place / "pass") / "result.json").read_text(encoding="utf-8")
    coverage = json.loads(text)["coverage"]
    assert (coverage["points_hit"], coverage["kills_unmatched"]) == (6, 0)
    assert (coverage["kills_bounding"], coverage["failure_bound"]) == (6, 0.5)


def test_judge_says_what_the_run_said(chaos: Run, ended: dict[str, subprocess.CompletedProcess[str]]) -> None:
    """The report worked out again from the journal is the report of the run, word for word, with its exit status."""
    for verdict, run in ended.items():
        judged = chaos("judge", "latest", "--runs", verdict)
        assert judged.returncode == run.returncode
        assert judged.stderr.startswith("seed ")
        assert run.stderr.endswith(judged.stderr)


def test_replay_of_a_finding_shows_it_again(
    chaos: Run, place: Path, ended: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    """The command that a finding ends with reproduces it: the same crash states, exit status 1."""
    assert ended["fail"].returncode == 1
    result = json.loads((_only_run(place / "fail") / "result.json").read_text(encoding="utf-8"))
    words = result["findings"][0]["replay"].split()
    assert words[:2] == ["chaos", "replay"]
    plain = chaos(*words[1:])
    assert plain.returncode == 1
    _assert_snapshot("replay", _normalised(plain.stderr))
    again = json.loads(chaos(*words[1:], "--json").stdout)
    assert again["is_same"]
    assert all(life["recorded_digest"] == life["replayed_digest"] for life in again["lives"])
    assert {finding["check"] for finding in again["findings"]} >= {result["findings"][0]["check"]}


def test_replay_of_a_good_trial_ends_with_status_0(
    chaos: Run, ended: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    """A trial in which nothing is wrong stays so."""
    assert ended["pass"].returncode == 0
    again = chaos("replay", "latest/6", "--runs", "pass", "--json")
    assert (again.returncode, json.loads(again.stdout)["is_same"]) == (0, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["replay", "latest"], "`latest` is no RUN/TRIAL"),
        (["replay", "latest/99", "--runs", "pass"], "has no trial 99"),
        (["replay", "nosuch/6", "--runs", "pass"], "there is no run `nosuch`"),
        (["judge", "nosuch", "--runs", "pass"], "there is no run `nosuch`"),
    ],
)
def test_wrong_names_of_runs(
    chaos: Run, ended: dict[str, subprocess.CompletedProcess[str]], words: list[str], said: str
) -> None:
    """A run or trial that does not exist is exit status 2, with what there is."""
    assert ended["pass"].returncode == 0
    result = chaos(*words)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.fixture
def busy_cores() -> Iterator[None]:
    """Keep every core busy for the duration."""
    code = "while True: pass"
    loops = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.usefixtures("busy_cores")
def test_same_seed_same_kills_under_load(
    chaos: Run, place: Path, ended: dict[str, subprocess.CompletedProcess[str]], jobs: str
) -> None:
    """With the same seed the schedule and every crash state are the same, busy cores and other jobs or not."""
    assert ended["pass"].returncode == 0
    chaos(*_campaign(f"busy{jobs}", options=("--jobs", jobs)))
    assert _schedule(place / f"busy{jobs}") == _schedule(place / "pass")
    assert _crash_states(place / f"busy{jobs}") == _crash_states(place / "pass")


def test_another_seed_is_another_schedule(
    chaos: Run, place: Path, ended: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    """The schedule comes from the seed."""
    assert ended["pass"].returncode == 0
    chaos(*_campaign("other", options=("--dry-run",), seed=SEED + 1))
    assert _schedule(place / "other")[-1] != _schedule(place / "pass")[-1]


def test_continue_of_a_finished_run_reports_it_again(
    chaos: Run, ended: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    """`--continue` has nothing left to run, and ends with the same report and status."""
    again = chaos("run", "--continue", "--runs", "fail")
    assert again.returncode == 1
    first, rest = again.stderr.split("\n", 1)
    assert "seed 11" in first
    assert ended["fail"].stderr.endswith(rest)


def test_interrupted_campaign_goes_on(
    place: Path, chaos: Run, ended: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    """A journal cut off in mid-campaign is judged inconclusive, and `--continue` reaches the verdict of the whole."""
    assert ended["fail"].returncode == 1
    chaos(*_campaign("cut", "--in-place"))
    journal = _only_run(place / "cut") / "journal.ndjson"
    lines = journal.read_bytes().splitlines(keepends=True)
    position = next(i for i, line in enumerate(lines) if b'"kind":"control"' in line and b"trial_finished" in line)
    journal.write_bytes(b"".join(lines[: position + 1]) + lines[position + 1][:20])
    judged = chaos("judge", "latest", "--runs", "cut", "--json")
    cut = json.loads(judged.stdout)
    assert (judged.returncode, cut["verdict"]) == (4, "inconclusive")
    assert any("chaos run --continue" in sentence for sentence in cut["inconclusive"])
    again = chaos("run", "--continue", "--runs", "cut", "--json")
    result = json.loads(again.stdout)
    assert (again.returncode, result["verdict"], result["kills_landed"]) == (1, "fail", 6)
    assert _crash_states(place / "cut") == _crash_states(place / "fail")


def test_budget_that_is_too_short_is_inconclusive(chaos: Run) -> None:
    """What the budget did not reach is said, and is no pass."""
    ended = chaos(*_campaign("short", options=("--budget", "0.001", "--json")))
    result = json.loads(ended.stdout)
    assert (ended.returncode, result["verdict"]) == (4, "inconclusive")
    assert any("the budget was used up" in sentence for sentence in result["inconclusive"])


def test_without_interception_the_verdict_says_what_is_not_guaranteed(chaos: Run) -> None:
    """Polled lives kill near the points; the report says so, and the JSON object says the mode."""
    ended = chaos(*_campaign("polled", options=("--no-intercept",), kills=2))
    assert "Without interception" in ended.stderr
    judged = json.loads(chaos("judge", "latest", "--runs", "polled", "--json").stdout)
    assert judged["mode"] == "polled"
    assert judged["not_guaranteed"]


def test_schema_is_printed_in_process(capsys: pytest.CaptureFixture[str]) -> None:
    """The version of the result's schema is that of an error's object, which is written without the record."""
    from chaos.model import SCHEMA

    assert shell.SCHEMA == SCHEMA
    assert shell.main(["run", "--json", "nosuch"]) == 2
    assert json.loads(capsys.readouterr().out)["schema"] == SCHEMA

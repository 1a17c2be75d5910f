"""The JSON result keeps its contract, and the report tells what broke, where, why, and what to type next."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.coverage import Coverage, PointCount
from chaos.journal import (
    CampaignEnded,
    CampaignStarted,
    ReferenceRecorded,
    TrialDiscarded,
    TrialFinished,
    TrialsPlanned,
)
from chaos.model import CheckName, CheckStatus, Expect, LifeEnd, LivesMode, Phase, Verdict
from chaos.reports.explanations import EXPLANATIONS
from chaos.reports.result import CampaignFacts, Result, build_result, final_digest, from_json, to_json, verified_kills
from chaos.reports.terminal import Progress, print_report, trial_in_words
from chaos.scenario import Scenario
from chaos.verdict import judge

KEYS = [
    "schema",
    "verdict",
    "as_expected",
    "seed",
    "target",
    "kills_requested",
    "kills_landed",
    "kills_by_phase",
    "coverage",
    "trials",
    "findings",
    "checks",
    "reference",
    "elapsed_s",
    "verified_kills_per_hour",
    "run_dir",
]
COVERAGE = Coverage(
    points_known=40,
    points_hit=5,
    by_phase={**dict.fromkeys(Phase, PointCount(known=4)), Phase.SAVE: PointCount(known=24, hit=5)},
    by_call={"rename": PointCount(known=6), "write": PointCount(known=18, hit=5)},
    tears=PointCount(known=17, hit=2),
    kills_bounding=6,
    failure_bound=0.5,
)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def result_of(
    records: Any, *, expect: Expect | None = None, mode: LivesMode = LivesMode.INTERCEPTED, **parts: Any
) -> Result:
    """Return the result of the good campaign with some of its parts changed."""
    reference = parts.get("reference", records.reference())
    outcomes = parts.get("outcomes", records.outcomes())
    judgement = judge(
        reference,
        outcomes,
        parts.get("canary", records.canary()),
        records.target,
        run_name="RUN",
        kills_requested=6,
        expect=expect,
        causes=parts.get("causes", ()),
    )
    facts = CampaignFacts(
        seed=41, run_name="RUN", run_dir=".chaos/RUN", target=records.target, mode=mode, elapsed_s=36.0
    )
    return build_result(judgement, facts, reference, outcomes, parts.get("coverage", COVERAGE))


def crashed(records: Any) -> Result:
    """Return the result of a campaign in which two resumes failed."""
    outcomes = tuple(
        records.altered(outcome, -1, exit_status=1, output_tail="Traceback\n  File x\nEOFError: [Errno 5] end\n")
        if outcome.trial.number in {4, 5}
        else outcome
        for outcome in records.outcomes()
    )
    return result_of(records, outcomes=outcomes)


def printed(result: Result, stream: io.StringIO | None = None) -> str:
    """Return the report as printed to a stream that is no terminal, or to the one given."""
    stream = stream if stream is not None else io.StringIO()
    print_report(result, stream)
    return stream.getvalue()


# --- the JSON object ----------------------------------------------------------------------------------


def test_the_keys_of_the_result(records: Any) -> None:
    """Everything that the contract names is there, phases and checks by name."""
    data = msgspec.json.decode(to_json(crashed(records)))
    assert set(KEYS) <= set(data)
    assert data["kills_by_phase"] == {"startup": 0, "step": 0, "save": 6, "recovery": 0, "finish": 0}
    assert data["coverage"]["by_phase"]["save"] == {"known": 24, "hit": 5}
    assert data["checks"]["resume_crashed"] == "failed"
    assert set(data["checks"]) == set(ALL_CHECKS)
    assert {"deterministic", "seconds", "final_digest"} <= set(data["reference"])
    finding = {"id", "check", "severity", "trial", "crash_point", "step", "detail", "replay"}
    assert finding <= set(data["findings"][0])
    assert (data["verdict"], data["seed"], data["trials"]) == ("fail", 41, 4)


def test_a_result_survives_json(records: Any) -> None:
    """Written and read back it is the same."""
    result = crashed(records)
    assert from_json(to_json(result)) == result


def test_verified_kills(records: Any) -> None:
    """Only kills whose lineage ran to its end and was compared count: 6 in 36 s are 600 an hour."""
    assert result_of(records).verified_kills == 6
    assert result_of(records).verified_kills_per_hour == 600.0
    assert crashed(records).verified_kills == 3
    assert verified_kills(records.reference(deterministic=False), records.outcomes()) == 0
    assert verified_kills(records.reference(final=()), records.outcomes()) == 0


def test_no_time_no_speed(records: Any) -> None:
    """A campaign that took no time, such as one that was cut short, has no kills an hour."""
    facts = CampaignFacts(seed=41, run_name="RUN", run_dir=".chaos/RUN", target=records.target, elapsed_s=0.0)
    result = build_result(records.judged(), facts, records.reference(), records.outcomes(), COVERAGE)
    assert result.verified_kills_per_hour == 0.0


def test_the_final_digest(records: Any) -> None:
    """That of a single file is its own; of several it depends on names and contents, not on their order."""
    one, two = records.final(), replace(records.final("other"), key="second.pt")
    assert final_digest((one,)) == "bits"
    assert final_digest((one, two)) == final_digest((two, one))
    assert final_digest((one, replace(two, digest="x"))) != final_digest((one, two))
    assert final_digest(()) == ""


# --- the report -----------------------------------------------------------------------------------------


def test_every_check_is_explained() -> None:
    """Rule, meaning and cause of each check, in words of their own."""
    assert set(EXPLANATIONS) == set(CheckName)
    texts = [text for item in EXPLANATIONS.values() for text in (item.rule, item.meaning, item.cause)]
    assert all(texts)
    assert len(set(texts)) == len(texts)


def test_the_report_of_a_pass(records: Any) -> None:
    """Seed first and last, kills by phase, each check, the verdict and what it means."""
    text = printed(result_of(records))
    lines = text.splitlines()
    assert lines[0] == lines[-1] == "seed 41"
    assert "Kills: 6 of 6 landed" in lines
    assert ["save", "6", "5", "24"] in [line.split() for line in lines]
    assert "verdict: PASS" in lines
    assert text.count("  passed ") == len(ALL_CHECKS) - 2  # errors and damage were not asked for, so not a word of them
    assert text.count("  not run ") == 0
    assert "every interrupted run ended with the same bits" in " ".join(text.split())
    assert "Findings" not in text
    assert "Not proven" not in text


def test_the_report_of_a_failure(records: Any) -> None:
    """What broke, where, what was seen, why, and the command on a line of its own."""
    text = printed(crashed(records))
    words = " ".join(text.split())
    assert "verdict: FAIL" in text
    assert EXPLANATIONS[CheckName.RESUME_CRASHED].meaning in words
    assert EXPLANATIONS[CheckName.RESUME_CRASHED].cause in words
    assert "kill in save 3, before write #2 of ck.pt.tmp" in words
    assert "EOFError: [Errno 5] end" in text
    assert [line.split(maxsplit=1) for line in text.splitlines() if "chaos replay" in line] == [
        ["next", "chaos replay RUN/4"]
    ]
    assert "seen 2 times" in words


def test_the_report_of_a_doubt(records: Any) -> None:
    """What was not proven is listed, and checks that were not run say why."""
    text = printed(result_of(records, canary=None, reference=records.reference(no_save_final=None)))
    assert "verdict: INCONCLUSIVE" in text
    assert "The canary, a trial with a planted bug" in " ".join(text.split())
    assert "not run     saving_changes_training: the target has no command that trains without saving" in text


def test_the_report_of_the_coverage(records: Any) -> None:
    """How much was hit, by phase and call, and what the kills bound, with what that does not say."""
    text = printed(result_of(records))
    words = " ".join(text.split())
    assert "Coverage: 5 of 40 known crash points were hit" in text.splitlines()
    assert "in saves rename 0 of 6, write 5 of 18" in words
    assert "torn 2 of 17 writes that can be torn were torn" in words
    assert "not one of 6 kills broke a rule that was checked: at 95 % confidence, at most 50 % of the kills" in words
    assert "not evenly over time" in words
    assert "or of the loss of power." in words
    assert "count for no point" not in words


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"failure_bound": None}, "bound nothing is bounded, since something was found"),
        (
            {"failure_bound": None, "kills_bounding": 0},
            "bound nothing is bounded: no kill landed in a lineage that ran",
        ),
        ({"failure_bound": 1.0, "kills_bounding": 3}, "bound nothing is bounded: 3 kills are too few"),
        ({"failure_bound": 1.0, "kills_bounding": 1}, "bound nothing is bounded: 1 kill is too few"),
        ({"kills_bounding": 7, "failure_bound": 3 / 7}, "at most 42.9 % of the kills drawn in the same way"),
        ({"kills_unmatched": 1}, "apart 1 kill counts for no point: a first life does not come to its place"),
        ({"kills_unmatched": 2}, "apart 2 kills count for no point: a first life does not come to their places"),
    ],
)
def test_coverage_in_words(records: Any, changes: dict[str, Any], said: str) -> None:
    """Where nothing is bounded the report says why, and what could not be placed is told."""
    text = printed(result_of(records, coverage=replace(COVERAGE, **changes)))
    assert said in " ".join(text.split())


def test_coverage_of_polled_lives_in_words(records: Any) -> None:
    """Their kills are counted apart for another reason."""
    coverage = replace(COVERAGE, kills_unmatched=6)
    words = " ".join(printed(result_of(records, coverage=coverage, mode=LivesMode.POLLED)).split())
    assert "6 kills count for no point: without interception a kill lands only near its point" in words


def test_the_report_of_an_expected_failure(records: Any) -> None:
    """The verdict stays what it is, and the report says whether it was expected."""
    expect = Expect(verdict=Verdict.FAIL, findings=(CheckName.RESUME_CRASHED,))
    text = printed(result_of(records, expect=expect))
    assert "verdict: PASS" in text
    assert "this scenario expects fail; this came out NOT as expected" in text


def test_polled_lives_say_what_is_not_guaranteed(records: Any) -> None:
    """Without interception the report says so."""
    assert "Without interception" in printed(result_of(records, mode=LivesMode.POLLED))
    assert "Without interception" not in printed(result_of(records))


def test_what_was_written_elsewhere_is_told(records: Any) -> None:
    """Paths outside of the output folder are in the result (at most fifty) and the report; the verdict stays."""
    paths = tuple(f"/far/{n:02d}.json" for n in range(60))
    result = result_of(records, outcomes=records.with_life(4, 0, outside_writes=paths))
    assert result.verdict is Verdict.PASS
    assert result.outside_writes == paths[:50]
    words = " ".join(printed(result).split())
    assert "note written outside of {out}, where nobody looks: /far/00.json, /far/01.json," in words
    assert "; state kept there is not judged" in words
    assert "outside of {out}" not in printed(result_of(records))


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"])
def test_no_colour_codes_outside_a_terminal(variable: str, records: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says; and no line of prose is wider than 100 columns."""
    monkeypatch.setenv(variable, "1")
    text = printed(crashed(records))
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_colours_on_a_terminal(records: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words, with colour codes."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = printed(crashed(records), Terminal())
    assert "\x1b[" in text
    assert "verdict: FAIL" in text


def test_markup_in_a_target_s_output_is_text(records: Any) -> None:
    """Brackets and colons that mean something to rich are printed as they are."""
    result = result_of(records, causes=("[bold]not markup[/bold] :smile: [/oops]",))
    assert "[bold]not markup[/bold] :smile: [/oops]" in printed(result)


# --- progress -------------------------------------------------------------------------------------------


def test_progress_lines(records: Any) -> None:
    """One line for each event; landed kills are counted up to those asked for."""
    stream = io.StringIO()
    progress = Progress(stream)
    outcome = records.lineage(4, 2, 3)
    scenario = Scenario(name="durable", target=records.target)
    started = CampaignStarted(
        run="RUN", seed=41, kills=6, jobs=2, mode=LivesMode.INTERCEPTED, strict=False, scenario=scenario
    )
    for event in (
        started,
        ReferenceRecorded(reference=records.reference(), points=()),
        TrialsPlanned(trials=(outcome.trial,)),
        TrialFinished(outcome=records.canary()),
        TrialFinished(outcome=outcome),
        TrialDiscarded(number=9, reason="a signal interrupted a call"),
        CampaignEnded(elapsed_s=9.0, causes=("The budget was spent.",)),
    ):
        progress.handle(event)
    assert stream.getvalue().splitlines() == [
        "run RUN: 6 kills, seed 41",
        "reference: 60 steps, 6 saves, 3.0 s; two runs ended with the same bits",
        "planned: 2 kills in 1 trials",
        "trial 3 (canary): killed in save; ran to its end  4.0 s  [0/6 kills]",
        "trial 4 (faulted): killed in save, save; ran to its end  4.0 s  [2/6 kills]",
        "trial 9 is discarded and drawn again: a signal interrupted a call",
        "The budget was spent.",
    ]


def test_trials_in_words(records: Any) -> None:
    """How the last life ended is said where it did not run to its end."""
    failed = records.altered(records.lineage(4, 2), -1, exit_status=1)
    assert "killed in save; life 2 ended with exit status 1" in trial_in_words(failed)
    hung = records.altered(records.lineage(4, 2), -1, end=LifeEnd.DEADLINE, exit_status=None)
    assert "life 2 was still running at its deadline" in trial_in_words(hung)
    assert "no life was started" in trial_in_words(replace(failed, lives=()))


def test_phases_of_the_table_are_in_order(records: Any) -> None:
    """The table lists all five phases in the order of a lineage."""
    assert list(result_of(records).kills_by_phase) == list(Phase)
    assert result_of(records).checks[CheckName.LOST_WORK] is CheckStatus.PASSED

"""The verdict: a mutant of any check is noticed, a kill without evidence is never a pass, fail outweighs doubt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS, Check
from chaos.model import (
    CheckName,
    CheckResult,
    CheckStatus,
    Expect,
    FaultKind,
    LifeEnd,
    Outcome,
    Phase,
    Reference,
    Severity,
    Target,
    Verdict,
    Violation,
)
from chaos.verdict import Judgement, exit_status, findings_of, is_as_expected, merge

NUM_KILLS = 6


def test_a_good_campaign_passes(records: Any) -> None:
    """Nothing is found, nothing is in doubt, all kills are counted by phase."""
    judgement = records.judged()
    assert judgement.verdict is Verdict.PASS
    assert judgement.as_expected
    assert (judgement.findings, judgement.inconclusive) == ((), ())
    not_run = {result.check for result in judgement.checks if result.status is not CheckStatus.PASSED}
    assert not_run == {CheckName.FAILED_SAVE_IGNORED, CheckName.CORRUPTION_ACCEPTED}  # those are of other faults
    assert judgement.kills_landed == NUM_KILLS
    assert judgement.kills_by_phase == {phase: NUM_KILLS if phase is Phase.SAVE else 0 for phase in Phase}
    assert exit_status(judgement) == 0


# --- mutants: a check that always passes ------------------------------------------------------------


def leaking(records: Any) -> tuple[Outcome, ...]:
    """Return the good campaign's lineages with a temporary left for each kill."""
    return tuple(
        records.altered(outcome, -1, other_files=tuple(f"tmp.{n}" for n in range(outcome.kills_landed)))
        for outcome in records.outcomes()
    )


def bad_campaign(name: CheckName, records: Any) -> dict[str, Any]:
    """Return what to change in the good campaign so that this check, and no other, finds something."""
    torn = (records.file("ck.pt", "torn", is_whole=False),)
    final = (*records.checkpoints(6), records.final("other bits"))
    outcomes = {
        CheckName.NO_VALID_CHECKPOINT: lambda: records.with_life(4, 0, crash_state=torn),
        CheckName.ACKNOWLEDGED_LOST: lambda: records.with_life(4, 0, crash_state=records.checkpoints(1)),
        CheckName.RESUME_CRASHED: lambda: records.with_life(4, -1, exit_status=1),
        CheckName.RESUME_HUNG: lambda: records.with_life(4, -1, end=LifeEnd.DEADLINE, exit_status=None),
        CheckName.LOST_WORK: lambda: records.with_life(4, -1, first_step=1, steps=60),
        CheckName.DID_NOT_FINISH: lambda: records.with_life(4, -1, last_step=59),
        CheckName.SILENT_DIVERGENCE: lambda: records.with_life(4, -1, crash_state=final),
        CheckName.DATA_REPEATED: lambda: records.with_life(4, -1, **records.fed(2, first=1)),
        CheckName.DATA_SKIPPED: lambda: records.with_life(4, -1, **records.fed(2, first=31)),
        CheckName.ORPHAN_PROCESSES: lambda: records.with_life(4, -1, orphans=("sleep 9",)),
        CheckName.LEAKED_FILES: lambda: leaking(records),
    }
    references = {
        CheckName.SAVING_CHANGES_TRAINING: lambda: records.reference(no_save_final=(records.final("x"),)),
        CheckName.UNSAFE_CHECKPOINT: lambda: records.reference(unsafe=("ck.pt",)),
    }
    others = {
        CheckName.FAILED_SAVE_IGNORED: (FaultKind.DISK_FULL, lambda: records.ignoring(7)),
        CheckName.CORRUPTION_ACCEPTED: (FaultKind.BIT_FLIP, lambda: records.rotten(7, resumed=2)),
    }
    if name in others:
        kind, lineage = others[name]
        return {"outcomes": (*records.outcomes(), lineage()), "kinds": (FaultKind.KILL, kind)}
    return {"outcomes": outcomes[name]()} if name in outcomes else {"reference": references[name]()}


def without(name: CheckName) -> Mapping[CheckName, Check]:
    """Return all checks, that of `name` replaced by one that passes whatever it is given."""

    def passes(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
        """Look at nothing."""
        _ = reference, outcomes, target
        return CheckResult(check=name, status=CheckStatus.PASSED)

    return {**ALL_CHECKS, name: passes}


@pytest.mark.parametrize("name", ALL_CHECKS)
def test_disabling_a_check_changes_the_verdict(name: CheckName, records: Any) -> None:
    """For every check there is a campaign that only this check fails; without it the verdict is another."""
    bad = bad_campaign(name, records)
    judgement = records.judged(strict=True, **bad)
    assert judgement.verdict is Verdict.FAIL
    assert [finding.check for finding in judgement.findings] == [name]
    assert exit_status(judgement) == 1
    assert records.judged(strict=True, checks=without(name), **bad).verdict is not Verdict.FAIL


@pytest.mark.parametrize("name", [CheckName.NO_VALID_CHECKPOINT, CheckName.SILENT_DIVERGENCE])
def test_disabling_a_check_that_the_canary_needs_is_never_a_pass(name: CheckName, records: Any) -> None:
    """Even in a campaign without any fault the canary tells that this check does not work."""
    judgement = records.judged(checks=without(name))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "did not find the planted bug" in judgement.inconclusive[0]


# --- evidence ---------------------------------------------------------------------------------------

KILLS = [(4, 0), (5, 0), (5, 1), (6, 0), (6, 1), (6, 2)]


@pytest.mark.parametrize("changes", [{"was_alive": False}, {"root_signal": 15}, {"root_signal": 0}])
@pytest.mark.parametrize(("trial", "position"), KILLS)
def test_a_kill_without_evidence_is_inconclusive(
    trial: int, position: int, changes: dict[str, Any], records: Any
) -> None:
    """Each single kill of the campaign that did not land, whatever is missing in its proof, is noticed by name."""
    lives = next(outcome.lives for outcome in records.outcomes() if outcome.trial.number == trial)
    evidence = replace(lives[position].evidence, **changes)
    for requested in (NUM_KILLS, NUM_KILLS - 1):
        outcomes = records.with_life(trial, position, evidence=evidence)
        judgement = records.judged(outcomes=outcomes, kills_requested=requested)
        assert judgement.verdict is Verdict.INCONCLUSIVE
        assert exit_status(judgement) == 4
        assert any(text.startswith(f"Trial {trial}: nothing proves") for text in judgement.inconclusive)


@pytest.mark.parametrize(("trial", "position"), KILLS)
def test_a_kill_that_never_happened_is_inconclusive(trial: int, position: int, records: Any) -> None:
    """A life without any evidence counts as no kill."""
    judgement = records.judged(outcomes=records.with_life(trial, position, evidence=None))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.kills_landed == NUM_KILLS - 1


def test_evidence_of_another_point_is_none(records: Any) -> None:
    """A kill somewhere else does not prove the planned one."""
    evidence = records.evidence(records.point(save=9, call="rename"))
    judgement = records.judged(outcomes=records.with_life(4, 0, evidence=evidence))
    assert judgement.verdict is Verdict.INCONCLUSIVE


def test_a_point_that_was_not_reached_and_drawn_again(records: Any) -> None:
    """It needs no evidence, as long as enough others landed."""
    outcomes = records.outcomes()
    point = records.point(save=5)
    trial = replace(outcomes[1].trial, crash_points=(*outcomes[1].trial.crash_points, point))
    redrawn = replace(outcomes[1], trial=trial, unreached=(point,))
    assert records.judged(outcomes=(outcomes[0], redrawn, *outcomes[2:])).verdict is Verdict.PASS
    assert records.judged(outcomes=(outcomes[0], replace(redrawn, unreached=()), *outcomes[2:])).verdict is (
        Verdict.INCONCLUSIVE
    )


def test_too_few_kills(records: Any) -> None:
    """Seven asked, six landed."""
    judgement = records.judged(kills_requested=7)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "6 of the 7" in judgement.inconclusive[0]


# --- findings and merging -----------------------------------------------------------------------------


def test_fail_outweighs_doubt(records: Any) -> None:
    """A rule seen broken is broken, whatever else was not proven."""
    judgement = records.judged(canary=None, **bad_campaign(CheckName.RESUME_CRASHED, records))
    assert judgement.verdict is Verdict.FAIL
    assert judgement.inconclusive


def test_a_control_that_breaks_a_rule_is_a_finding(records: Any) -> None:
    """The control's violation needs no kill."""
    judgement = records.judged(outcomes=records.with_life(2, 0, last_step=50))
    assert judgement.verdict is Verdict.FAIL
    assert judgement.findings[0].crash_point == "no fault"


@pytest.mark.parametrize("name", [CheckName.LEAKED_FILES, CheckName.UNSAFE_CHECKPOINT])
def test_warnings_fail_only_when_strict(name: CheckName, records: Any) -> None:
    """A warning is shown in any case."""
    bad = bad_campaign(name, records)
    lenient = records.judged(**bad)
    assert lenient.verdict is Verdict.PASS
    assert [finding.severity for finding in lenient.findings] == [Severity.WARNING]
    assert records.judged(strict=True, **bad).verdict is Verdict.FAIL


def violation(records: Any, trial: int, *, save: int, call: str = "write") -> Violation:
    """Return a violation at a point of one kind of place."""
    point = records.point(save, call=call)
    return Violation(check=CheckName.RESUME_CRASHED, trial=trial, crash_point=point, detail=f"in trial {trial}")


def test_findings_of_one_kind_of_place_are_one(records: Any) -> None:
    """Same check, phase, call and file: one finding, shown by its first trial, whatever the save."""
    same = [violation(records, 9, save=2), violation(records, 7, save=3), violation(records, 8, save=2, call="rename")]
    findings = findings_of(same, "RUN")
    assert [(finding.trial, finding.seen) for finding in findings] == [(7, 2), (8, 1)]
    assert findings[0].replay == "chaos replay RUN/7"
    assert findings[0].detail == "in trial 7"
    assert len({finding.id for finding in findings}) == 2
    assert findings_of(same[::-1], "RUN") == findings


def test_errors_come_before_warnings() -> None:
    """Whatever the order of trials; among errors the order is that of the checks."""
    names = (CheckName.UNSAFE_CHECKPOINT, CheckName.LEAKED_FILES, CheckName.ORPHAN_PROCESSES, CheckName.LOST_WORK)
    violations = [Violation(check=name, trial=trial, detail="") for trial, name in enumerate(names)]
    assert [finding.check for finding in findings_of(violations, "RUN")] == [names[3], names[2], names[1], names[0]]


def test_an_id_is_stable(records: Any) -> None:
    """The id depends on check and place alone; this one is kept so that stored ids stay valid in later versions."""
    (one,) = findings_of([violation(records, 9, save=2)], "RUN")
    (other,) = findings_of([violation(records, 4, save=2)], "OTHER")
    assert one.id == other.id == "db617569a3"


@given(data=st.data(), name=st.sampled_from(CheckName))
def test_the_order_of_outcomes_is_of_no_account(data: st.DataObject, name: CheckName, records: Any) -> None:
    """Trials end in any order; the judgement is the same."""
    bad = bad_campaign(name, records)
    outcomes = bad.pop("outcomes", records.outcomes())
    shuffled = tuple(data.draw(st.permutations(outcomes)))
    assert records.judged(outcomes=shuffled, **bad) == records.judged(outcomes=outcomes, **bad)


@given(verdicts=st.lists(st.sampled_from(Verdict)), more=st.lists(st.sampled_from(Verdict)), data=st.data())
def test_merging(verdicts: list[Verdict], more: list[Verdict], data: st.DataObject) -> None:
    """Fail, then inconclusive, then pass; order and grouping are of no account."""
    merged = merge([*verdicts, *more])
    assert merged is merge([merge(verdicts), merge(more)])
    assert merged is merge(data.draw(st.permutations([*verdicts, *more])))
    gravest = [v for v in (Verdict.FAIL, Verdict.INCONCLUSIVE) if v in verdicts + more]
    assert merged is (gravest[0] if gravest else Verdict.PASS)


# --- expectations ---------------------------------------------------------------------------------------

CRASHED = Expect(verdict=Verdict.FAIL, findings=(CheckName.RESUME_CRASHED,))


@pytest.mark.parametrize(
    ("expect", "name", "status"),
    [
        (CRASHED, CheckName.RESUME_CRASHED, 0),
        (CRASHED, CheckName.LOST_WORK, 1),
        (CRASHED, CheckName.UNSAFE_CHECKPOINT, 1),
        (replace(CRASHED, allow=(CheckName.LOST_WORK,)), CheckName.LOST_WORK, 1),
        (replace(CRASHED, findings=(CheckName.RESUME_HUNG, CheckName.LOST_WORK)), CheckName.LOST_WORK, 0),
        (replace(CRASHED, findings=(), allow=(CheckName.LOST_WORK,)), CheckName.LOST_WORK, 0),
        (replace(CRASHED, findings=()), CheckName.LOST_WORK, 0),
        (Expect(), CheckName.LOST_WORK, 1),
        (None, CheckName.LOST_WORK, 1),
        (None, CheckName.UNSAFE_CHECKPOINT, 0),
    ],
)
def test_expectations(expect: Expect | None, name: CheckName, status: int, records: Any) -> None:
    """At least one of the expected findings, and none outside both lists; the verdict itself does not change."""
    judgement = records.judged(expect=expect, **bad_campaign(name, records))
    assert exit_status(judgement) == status
    assert judgement.as_expected is (status == 0)
    assert judgement.verdict is (Verdict.PASS if name is CheckName.UNSAFE_CHECKPOINT else Verdict.FAIL)


def test_an_unexpected_finding_beside_the_expected_one() -> None:
    """One that is in neither list is a surprise, a warning is not."""
    expected = (CheckName.RESUME_CRASHED, CheckName.LEAKED_FILES)
    at = {"crash_point": None, "trial": 1, "detail": ""}
    findings = findings_of([Violation(check=name, **at) for name in expected], "RUN")
    assert is_as_expected(CRASHED, Verdict.FAIL, findings)
    more = findings_of([Violation(check=name, **at) for name in (*expected, CheckName.LOST_WORK)], "RUN")
    assert not is_as_expected(CRASHED, Verdict.FAIL, more)
    assert is_as_expected(replace(CRASHED, allow=(CheckName.LOST_WORK,)), Verdict.FAIL, more)


def test_an_expected_failure_that_does_not_come(records: Any) -> None:
    """Neither a pass nor a doubt is the expected failure; an expected doubt keeps its status."""
    assert exit_status(records.judged(expect=CRASHED)) == 1
    assert exit_status(records.judged(expect=CRASHED, canary=None)) == 1
    assert exit_status(records.judged(expect=Expect(verdict=Verdict.INCONCLUSIVE), canary=None)) == 4


@pytest.mark.parametrize("name", ALL_CHECKS)
def test_a_judgement_survives_json(name: CheckName, records: Any) -> None:
    """Written and read back it is the same."""
    judgement = records.judged(**bad_campaign(name, records))
    assert msgspec.json.decode(msgspec.json.encode(judgement), type=Judgement) == judgement

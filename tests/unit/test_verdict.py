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
    FileRole,
    LifeEnd,
    Outcome,
    Phase,
    Reference,
    Severity,
    Target,
    TrialKind,
    Verdict,
    Violation,
)
from chaos.verdict import Judgement, exit_status, findings_of, is_as_expected, judge, merge

NUM_KILLS = 6


def judged(records: Any, **changes: Any) -> Judgement:
    """Judge the good campaign of six kills, with some of its parts changed."""
    parts: dict[str, Any] = {
        "reference": records.reference(),
        "outcomes": records.outcomes(),
        "canary": records.canary(),
        "target": records.target,
        "run_name": "RUN",
        "kills_requested": NUM_KILLS,
    }
    return judge(**{**parts, **changes})


def with_life(records: Any, trial: int, position: int, **changes: Any) -> tuple[Outcome, ...]:
    """Return the good campaign's lineages with one life of one trial changed."""
    return tuple(
        records.altered(outcome, position, **changes) if outcome.trial.number == trial else outcome
        for outcome in records.outcomes()
    )


def test_a_good_campaign_passes(records: Any) -> None:
    """Nothing is found, nothing is in doubt, all kills are counted by phase."""
    judgement = judged(records)
    assert judgement.verdict is Verdict.PASS
    assert judgement.as_expected
    assert (judgement.findings, judgement.inconclusive) == ((), ())
    assert all(result.status is CheckStatus.PASSED for result in judgement.checks)
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
        CheckName.NO_VALID_CHECKPOINT: lambda: with_life(records, 4, 0, crash_state=torn),
        CheckName.ACKNOWLEDGED_LOST: lambda: with_life(records, 4, 0, crash_state=records.checkpoints(1)),
        CheckName.RESUME_CRASHED: lambda: with_life(records, 4, -1, exit_status=1),
        CheckName.RESUME_HUNG: lambda: with_life(records, 4, -1, end=LifeEnd.DEADLINE, exit_status=None),
        CheckName.LOST_WORK: lambda: with_life(records, 4, -1, first_step=1, steps=60),
        CheckName.DID_NOT_FINISH: lambda: with_life(records, 4, -1, last_step=59),
        CheckName.SILENT_DIVERGENCE: lambda: with_life(records, 4, -1, crash_state=final),
        CheckName.ORPHAN_PROCESSES: lambda: with_life(records, 4, -1, orphans=("sleep 9",)),
        CheckName.LEAKED_FILES: lambda: leaking(records),
    }
    references = {
        CheckName.SAVING_CHANGES_TRAINING: lambda: records.reference(no_save_final=(records.final("x"),)),
        CheckName.UNSAFE_CHECKPOINT: lambda: records.reference(unsafe=("ck.pt",)),
    }
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
    judgement = judged(records, strict=True, **bad)
    assert judgement.verdict is Verdict.FAIL
    assert [finding.check for finding in judgement.findings] == [name]
    assert exit_status(judgement) == 1
    assert judged(records, strict=True, checks=without(name), **bad).verdict is not Verdict.FAIL


@pytest.mark.parametrize("name", [CheckName.NO_VALID_CHECKPOINT, CheckName.SILENT_DIVERGENCE])
def test_disabling_a_check_that_the_canary_needs_is_never_a_pass(name: CheckName, records: Any) -> None:
    """Even in a campaign without any fault the canary tells that this check does not work."""
    judgement = judged(records, checks=without(name))
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
        outcomes = with_life(records, trial, position, evidence=evidence)
        judgement = judged(records, outcomes=outcomes, kills_requested=requested)
        assert judgement.verdict is Verdict.INCONCLUSIVE
        assert exit_status(judgement) == 4
        assert any(text.startswith(f"Trial {trial}: nothing proves") for text in judgement.inconclusive)


@pytest.mark.parametrize(("trial", "position"), KILLS)
def test_a_kill_that_never_happened_is_inconclusive(trial: int, position: int, records: Any) -> None:
    """A life without any evidence counts as no kill."""
    judgement = judged(records, outcomes=with_life(records, trial, position, evidence=None))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.kills_landed == NUM_KILLS - 1


def test_evidence_of_another_point_is_none(records: Any) -> None:
    """A kill somewhere else does not prove the planned one."""
    evidence = records.evidence(records.point(save=9, call="rename"))
    judgement = judged(records, outcomes=with_life(records, 4, 0, evidence=evidence))
    assert judgement.verdict is Verdict.INCONCLUSIVE


def test_a_point_that_was_not_reached_and_drawn_again(records: Any) -> None:
    """It needs no evidence, as long as enough others landed."""
    outcomes = records.outcomes()
    point = records.point(save=5)
    trial = replace(outcomes[1].trial, crash_points=(*outcomes[1].trial.crash_points, point))
    redrawn = replace(outcomes[1], trial=trial, unreached=(point,))
    assert judged(records, outcomes=(outcomes[0], redrawn, *outcomes[2:])).verdict is Verdict.PASS
    assert judged(records, outcomes=(outcomes[0], replace(redrawn, unreached=()), *outcomes[2:])).verdict is (
        Verdict.INCONCLUSIVE
    )


def test_too_few_kills(records: Any) -> None:
    """Seven asked, six landed."""
    judgement = judged(records, kills_requested=7)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "6 of the 7" in judgement.inconclusive[0]


# --- doubts -----------------------------------------------------------------------------------------


def test_no_canary_is_inconclusive(records: Any) -> None:
    """Without the planted bug nothing shows that the checks work."""
    assert judged(records, canary=None).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("position", [0, 1])
def test_a_canary_without_one_of_its_bugs_is_inconclusive(position: int, records: Any) -> None:
    """Both planted bugs must be seen: torn checkpoints in the first life, a flipped bit in the last."""
    good = records.lineage(3, 2).lives[position].crash_state
    canary = records.altered(records.canary(), position, crash_state=good)
    judgement = judged(records, canary=canary)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "did not find the planted bug" in judgement.inconclusive[0]


def test_a_target_that_is_not_deterministic(records: Any) -> None:
    """Its final bits are in doubt, by name, and the canary's flipped bit is not asked for."""
    good = records.lineage(3, 2).lives[1].crash_state
    canary = records.altered(records.canary(), 1, crash_state=good)
    reference = records.reference(deterministic=False, differing_tensors=("blocks.0.w",))
    judgement = judged(records, reference=reference, canary=canary)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert len(judgement.inconclusive) == 1
    assert "blocks.0.w" in judgement.inconclusive[0]


def test_a_control_that_fails_or_is_missing(records: Any) -> None:
    """Without a good control nothing can be blamed on a kill."""
    failed = with_life(records, 2, 0, exit_status=3, output_tail="no such file\n")
    judgement = judged(records, outcomes=failed)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "exit status 3; last line: no such file" in judgement.inconclusive[0]
    assert judged(records, outcomes=records.outcomes()[1:]).verdict is Verdict.INCONCLUSIVE


def test_a_lineage_that_stops_without_a_violation(records: Any) -> None:
    """A life that our holding disturbed, or that was not started, is no finding and no pass."""
    for changes in ({"exit_status": 1, "interrupted_calls": 2}, {"end": LifeEnd.NOT_STARTED, "exit_status": None}):
        judgement = judged(records, outcomes=with_life(records, 4, -1, **changes))
        assert judgement.verdict is Verdict.INCONCLUSIVE
        assert "Trial 4 did not run to its end" in judgement.inconclusive[0]


def test_a_target_that_never_saves(records: Any) -> None:
    """No checkpoint, no acknowledgement: nothing was tested."""
    bare = {"acknowledgements": (), "crash_state": (records.final(),)}
    outcomes = (records.altered(records.control(), 0, **bare),)
    runs = (records.altered(records.control(), 0, **bare),) * 2
    judgement = judged(records, reference=records.reference(outcomes=runs), outcomes=outcomes, kills_requested=0)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert any("ck*.pt was ever seen" in text for text in judgement.inconclusive)


def stripped(records: Any, *, acknowledged: bool, is_whole: bool | None) -> dict[str, Any]:
    """Return reference and lineages whose checkpoints are judged as given, with or without acknowledgements."""

    def strip(outcome: Outcome) -> Outcome:
        """Change every life of one lineage."""
        lives = []
        for life in outcome.lives:
            state = tuple(
                replace(file, is_whole=is_whole) if file.role is FileRole.CHECKPOINT else file
                for file in life.crash_state
            )
            acks = tuple(replace(ack, files=()) for ack in life.acknowledgements) if acknowledged else ()
            lives.append(replace(life, acknowledgements=acks, crash_state=state))
        return replace(outcome, lives=tuple(lives))

    reference = records.reference(outcomes=tuple(strip(run) for run in records.reference().outcomes))
    return {"reference": reference, "outcomes": tuple(strip(outcome) for outcome in records.outcomes())}


def test_saves_without_acknowledgement(records: Any) -> None:
    """Nothing says what had to survive."""
    judgement = judged(records, **stripped(records, acknowledged=False, is_whole=True))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.inconclusive[0].startswith("No save was ever acknowledged")


def test_checkpoints_that_nobody_can_judge(records: Any) -> None:
    """A format of one's own needs a `verify` command."""
    judgement = judged(records, **stripped(records, acknowledged=True, is_whole=None))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert any("`verify`" in text for text in judgement.inconclusive)


@pytest.mark.parametrize(
    ("changes", "is_doubt"),
    [
        ({"unseen_writers": ("ck.pt",)}, True),
        ({"unseen_writers": ("ck.pt/model.bin",)}, True),
        ({"unseen_writers": ("final.pt",)}, True),
        ({"unseen_writers": ("run.log",)}, False),
        ({"foreign_calls": 1}, True),
    ],
)
def test_what_was_not_seen(changes: dict[str, Any], is_doubt: bool, records: Any) -> None:  # noqa: FBT001 - a parameter of a test
    """Unseen writes to files that matter, and calls that cannot be followed, leave doubts."""
    judgement = judged(records, outcomes=with_life(records, 5, 1, **changes))
    assert judgement.verdict is (Verdict.INCONCLUSIVE if is_doubt else Verdict.PASS)


def test_further_causes(records: Any) -> None:
    """What the campaign itself says was not covered is a doubt."""
    judgement = judged(records, causes=("The budget was spent.",))
    assert judgement.inconclusive == ("The budget was spent.",)
    assert judgement.verdict is Verdict.INCONCLUSIVE


# --- findings and merging -----------------------------------------------------------------------------


def test_fail_outweighs_doubt(records: Any) -> None:
    """A rule seen broken is broken, whatever else was not proven."""
    judgement = judged(records, canary=None, **bad_campaign(CheckName.RESUME_CRASHED, records))
    assert judgement.verdict is Verdict.FAIL
    assert judgement.inconclusive


def test_a_control_that_breaks_a_rule_is_a_finding(records: Any) -> None:
    """The control's violation needs no kill."""
    judgement = judged(records, outcomes=with_life(records, 2, 0, last_step=50))
    assert judgement.verdict is Verdict.FAIL
    assert judgement.findings[0].crash_point == "no fault"


@pytest.mark.parametrize("name", [CheckName.LEAKED_FILES, CheckName.UNSAFE_CHECKPOINT])
def test_warnings_fail_only_when_strict(name: CheckName, records: Any) -> None:
    """A warning is shown in any case."""
    bad = bad_campaign(name, records)
    lenient = judged(records, **bad)
    assert lenient.verdict is Verdict.PASS
    assert [finding.severity for finding in lenient.findings] == [Severity.WARNING]
    assert judged(records, strict=True, **bad).verdict is Verdict.FAIL


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


def test_an_id_is_stable(records: Any) -> None:
    """The id depends on check and place alone; this one is kept so that stored ids stay valid in later versions."""
    (one,) = findings_of([violation(records, 9, save=2)], "RUN")
    (other,) = findings_of([violation(records, 4, save=2)], "OTHER")
    assert one.id == other.id == "277691c266"


@given(order=st.permutations(range(4)), name=st.sampled_from(CheckName))
def test_the_order_of_outcomes_is_of_no_account(order: list[int], name: CheckName, records: Any) -> None:
    """Trials end in any order; the judgement is the same."""
    bad = bad_campaign(name, records)
    outcomes = bad.pop("outcomes", records.outcomes())
    shuffled = tuple(outcomes[position] for position in order)
    assert judged(records, outcomes=shuffled, **bad) == judged(records, outcomes=outcomes, **bad)


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
    judgement = judged(records, expect=expect, **bad_campaign(name, records))
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
    assert exit_status(judged(records, expect=CRASHED)) == 1
    assert exit_status(judged(records, expect=CRASHED, canary=None)) == 1
    assert exit_status(judged(records, expect=Expect(verdict=Verdict.INCONCLUSIVE), canary=None)) == 4


def test_without_a_control_only_the_control_is_missed(records: Any) -> None:
    """A lineage of another kind does not stand in for the control."""
    outcomes = tuple(
        replace(outcome, trial=replace(outcome.trial, kind=TrialKind.REFERENCE)) if not index else outcome
        for index, outcome in enumerate(records.outcomes())
    )
    assert judged(records, outcomes=outcomes).inconclusive[0].startswith("No control")


@pytest.mark.parametrize("name", ALL_CHECKS)
def test_a_judgement_survives_json(name: CheckName, records: Any) -> None:
    """Written and read back it is the same."""
    judgement = judged(records, **bad_campaign(name, records))
    assert msgspec.json.decode(msgspec.json.encode(judgement), type=Judgement) == judgement

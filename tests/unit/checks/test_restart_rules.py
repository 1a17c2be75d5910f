"""The rules on lives that are started again: they come back, from the newest checkpoint, and finish."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.model import (
    Acknowledgement,
    CheckName,
    CheckResult,
    CheckStatus,
    LifeEnd,
    Outcome,
    Reference,
    SaveProfile,
    TrialKind,
)


def run(name: CheckName, records: Any, *outcomes: Outcome, **reference: Any) -> CheckResult:
    """Run one check on the given lineages."""
    return ALL_CHECKS[name](records.reference(**reference), outcomes, records.target)


def only(result: CheckResult) -> str:
    """Return the detail of the one violation of a failed check."""
    assert result.status is CheckStatus.FAILED
    (violation,) = result.violations
    return violation.detail


# --- resume_crashed, resume_hung --------------------------------------------------------------------


def test_a_resume_that_fails(records: Any) -> None:
    """The exit status and the last lines of the output are told."""
    output = "loading\nRuntimeError: unexpected end of file\n"
    bad = records.altered(records.lineage(4, 2), -1, exit_status=1, output_tail=output)
    result = run(CheckName.RESUME_CRASHED, records, bad)
    assert "exit status 1" in only(result)
    assert "RuntimeError: unexpected end of file" in only(result)
    assert result.violations[0].crash_point == bad.trial.crash_points[0]


def test_a_resume_that_dies_of_a_signal(records: Any) -> None:
    """A segmentation fault of a later life is a crash."""
    bad = records.altered(records.lineage(4, 2), -1, end=LifeEnd.SIGNALLED, exit_status=None, signal=11)
    assert "signal 11" in only(run(CheckName.RESUME_CRASHED, records, bad))


@pytest.mark.parametrize(
    "changes",
    [
        {"exit_status": 1, "interrupted_calls": 1},
        {"end": LifeEnd.DEADLINE, "exit_status": None, "interrupted_calls": 1},
        {"end": LifeEnd.NOT_STARTED, "exit_status": None},
    ],
)
@pytest.mark.parametrize("name", [CheckName.RESUME_CRASHED, CheckName.RESUME_HUNG])
def test_a_life_that_we_disturbed_is_not_judged(name: CheckName, changes: dict[str, Any], records: Any) -> None:
    """Calls interrupted while we held them may be the reason: no violation, and no pass."""
    bad = records.altered(records.lineage(4, 2), -1, **changes)
    assert run(name, records, bad).status is CheckStatus.NOT_RUN


def test_a_first_life_that_fails_is_no_resume(records: Any) -> None:
    """Without a life before it, an exit status says nothing about resuming."""
    outcome = records.outcome(4, TrialKind.FAULTED, records.finished(1, 0, exit_status=1))
    assert run(CheckName.RESUME_CRASHED, records, outcome).status is CheckStatus.NOT_RUN


def test_a_resume_that_hangs(records: Any) -> None:
    """A later life that the deadline ended is a violation."""
    bad = records.altered(records.lineage(4, 2), -1, end=LifeEnd.DEADLINE, exit_status=None, steps=0)
    assert "before its first step" in only(run(CheckName.RESUME_HUNG, records, bad))


# --- lost_work ------------------------------------------------------------------------------------


@pytest.mark.parametrize("resumed", [0, 1])
def test_work_is_lost_in_a_life_that_ran_to_its_end(resumed: int, records: Any) -> None:
    """The last life resumed from an older save, or from 0, though save 2 was whole."""
    bad = records.altered(records.lineage(4, 2), -1, first_step=resumed * 10 + 1, steps=60 - resumed * 10)
    assert "save 2 of the reference (step 20)" in only(run(CheckName.LOST_WORK, records, bad))


def test_work_is_lost_in_a_life_that_was_killed(records: Any) -> None:
    """The number of the first step line is enough."""
    bad = records.altered(records.lineage(4, 2, 3), 1, first_step=11, steps=29)
    assert run(CheckName.LOST_WORK, records, bad).violations[0].life == 2


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        (40, CheckStatus.PASSED),
        (41, CheckStatus.PASSED),
        (50, CheckStatus.FAILED),
        (51, CheckStatus.FAILED),
        (60, CheckStatus.FAILED),
    ],
)
def test_work_is_lost_without_step_lines(steps: int, status: CheckStatus, records: Any) -> None:
    """The count of ticks of a completed life shows it; one more tick than steps comes from no older checkpoint."""
    outcome = records.altered(records.lineage(4, 2), -1, first_step=None, last_step=None, steps=steps)
    assert run(CheckName.LOST_WORK, records, outcome).status is status


def with_a_save_each_step(records: Any) -> Reference:
    """Return a reference that saves after each of its 6 steps."""
    reference: Reference = records.reference()
    acks = tuple(replace(ack, step=ack.save) for ack in records.acknowledgements(1, 6))
    saves = tuple(SaveProfile(ordinal=n, ticks_before=n, step=n) for n in range(1, 7))
    first = records.altered(reference.outcomes[0], 0, acknowledgements=acks, steps=6, last_step=6)
    profile = replace(reference.profile, saves=saves, total_steps=6, last_step=6)
    return replace(reference, outcomes=(first, first), profile=profile)


@pytest.mark.parametrize(
    ("first_step", "steps", "status"),
    [
        (4, 3, CheckStatus.PASSED),
        (4, 4, CheckStatus.PASSED),
        (3, 3, CheckStatus.PASSED),
        (3, 4, CheckStatus.FAILED),
        (None, 4, CheckStatus.FAILED),
    ],
)
def test_work_is_lost_with_a_save_each_step(
    first_step: int | None, steps: int, status: CheckStatus, records: Any
) -> None:
    """Save 3 is whole: step 4 is next, though a line may name step 3, and a counted step train nothing."""
    outcome = records.altered(records.lineage(4, 3), -1, first_step=first_step, last_step=6, steps=steps)
    reference = with_a_save_each_step(records)
    assert ALL_CHECKS[CheckName.LOST_WORK](reference, (outcome,), records.target).status is status


def test_a_line_that_names_the_resumed_step_is_no_loss(records: Any) -> None:
    """`resumed at step 20` is a step line to many patterns; the steps done are the right ones."""
    fine = records.altered(records.lineage(4, 2, 3), 1, first_step=20)
    fine = records.altered(fine, 2, first_step=30)
    assert run(CheckName.LOST_WORK, records, fine).status is CheckStatus.PASSED


def test_to_begin_later_is_no_loss(records: Any) -> None:
    """A life whose first line comes late, such as one line in five steps, lost nothing."""
    fine = records.altered(records.lineage(4, 2, 3), 1, first_step=25)
    assert run(CheckName.LOST_WORK, records, fine).status is CheckStatus.PASSED


def test_a_save_that_was_published_but_not_acknowledged_counts(records: Any) -> None:
    """The newest whole checkpoint is to be used whether or not it was announced."""
    outcome = records.altered(records.lineage(4, 2), 0, crash_state=records.checkpoints(3))
    assert run(CheckName.LOST_WORK, records, outcome).status is CheckStatus.FAILED


def test_a_start_from_zero_after_a_total_loss(records: Any) -> None:
    """With nothing whole left, a silent start from 0 loses what had been acknowledged."""
    bad = records.altered(records.lineage(4, 2), 0, crash_state=(records.file("ck.pt", "x", is_whole=False),))
    bad = records.altered(bad, -1, first_step=1, steps=60)
    assert "started again from 0" in only(run(CheckName.LOST_WORK, records, bad))


def test_a_start_from_zero_before_any_save_is_right(records: Any) -> None:
    """Where nothing was acknowledged and nothing is there, 0 is where to start: nothing to judge."""
    assert run(CheckName.LOST_WORK, records, records.lineage(4, 0)).status is CheckStatus.NOT_RUN


# --- lost_work by content ---------------------------------------------------------------------------


def written_again(records: Any, first: int, last: int, *, at: int) -> tuple[Acknowledgement, ...]:
    """Return the acknowledgements of saves that a life made, each file with a time of its own (from `at`)."""
    acks = records.acknowledgements(first, last)
    return tuple(
        replace(ack, files=(replace(ack.files[0], modified_ns=at + n), *ack.files[1:])) for n, ack in enumerate(acks)
    )


def silent(records: Any, found: int, made: int, **changes: Any) -> Outcome:
    """Return a lineage that shows no step; save `found` was there, and the second life makes `made` first."""
    shown = {"first_step": None, "last_step": None, "steps": 0, "has_probe": False, "saves": 7 - made}
    acks = written_again(records, made, 6, at=1)
    outcome = records.altered(records.lineage(4, found), 0, first_step=None, last_step=None, steps=0)
    outcome = records.altered(outcome, -1, **{**shown, "acknowledgements": acks, **changes})
    assert isinstance(outcome, Outcome)
    return outcome


KILLED = {"end": LifeEnd.STRUCK, "exit_status": None, "signal": 9}


@pytest.mark.parametrize("profile", [{"has_steps": False, "uses_ticks": False, "total_steps": 0}, {}])
@pytest.mark.parametrize("changes", [{}, KILLED])
@pytest.mark.parametrize(
    ("found", "made", "expected"),
    [
        (3, 1, CheckStatus.FAILED),
        (3, 2, CheckStatus.FAILED),
        (3, 3, CheckStatus.NOT_RUN),
        (3, 4, CheckStatus.PASSED),
        (3, 5, CheckStatus.NOT_RUN),
        (1, 1, CheckStatus.NOT_RUN),
    ],
)
def test_work_is_lost_without_a_word(
    profile: dict[str, Any], changes: dict[str, Any], found: int, made: int, expected: CheckStatus, records: Any
) -> None:
    """The first save tells, for lives that end and for killed ones; the newest one again may be a save at the start."""
    if made > found + 1:
        changes = {**changes, **KILLED}  # a save was skipped, which only the content shows
    reference = records.reference(profile=replace(records.reference().profile, **profile))
    outcome = silent(records, found, made, **changes)
    assert ALL_CHECKS[CheckName.LOST_WORK](reference, (outcome,), records.target).status is expected


def test_the_detail_names_the_save_that_was_made_again(records: Any) -> None:
    """Without numbers, this is what shows the loss."""
    detail = only(run(CheckName.LOST_WORK, records, silent(records, 3, 2)))
    assert "made save 2 of the reference first" in detail
    assert "save 3 of the reference" in detail


def test_what_was_found_was_not_made(records: Any) -> None:
    """Files of the life before, also linked to another name, are not of this life; a new time says written again."""
    old = replace(records.checkpoints(1)[0], modified_ns=5)
    new = replace(records.checkpoints(2)[0], path="ck2.pt", modified_ns=6)
    for added, expected in (
        ((replace(old, path="ck.prev.pt"), new), CheckStatus.NOT_RUN),
        ((replace(old, modified_ns=7), new), CheckStatus.FAILED),
        ((replace(old, modified_ns=7), records.file("ck3.pt", "content3")), CheckStatus.PASSED),
        ((replace(old, modified_ns=7), records.file("ck3.pt", "unknown")), CheckStatus.NOT_RUN),
    ):
        acks = (replace(records.acknowledgement(1), files=added),)
        outcome = silent(records, 2, 3, acknowledgements=acks, **KILLED)
        outcome = records.altered(outcome, 0, crash_state=(old, new))
        assert run(CheckName.LOST_WORK, records, outcome).status is expected


def test_what_is_saved_before_the_first_step_says_nothing(records: Any) -> None:
    """A target that shows steps and saves what it has loaded: what it saves after its first step counts."""
    again = replace(written_again(records, 2, 2, at=1)[0], save=0)
    outcome = silent(records, 3, 4, acknowledgements=(again, *written_again(records, 4, 6, at=2)))
    assert run(CheckName.LOST_WORK, records, outcome).status is CheckStatus.PASSED


def test_saves_of_equal_content_are_not_judged(records: Any) -> None:
    """The reference's save 3 has the content of save 1 again: to make that says nothing about where a life began."""
    states = ["content1", "content2", "content1", "content4"]
    acks = tuple(
        replace(records.acknowledgement(n), files=(records.file("ck.pt", digest),))
        for n, digest in enumerate(states, 1)
    )
    reference = records.reference()
    first = records.altered(reference.outcomes[0], 0, acknowledgements=acks, crash_state=acks[-1].files)
    reference = replace(reference, outcomes=(first, first))
    outcome = silent(records, 2, 3, acknowledgements=(replace(acks[2], save=1),), **KILLED)
    assert ALL_CHECKS[CheckName.LOST_WORK](reference, (outcome,), records.target).status is CheckStatus.NOT_RUN


@pytest.mark.parametrize(
    ("first_step", "made", "expected"),
    [
        (3, 2, CheckStatus.FAILED),
        (3, 3, CheckStatus.FAILED),
        (3, 4, CheckStatus.PASSED),
        (3, None, CheckStatus.NOT_RUN),
        (2, None, CheckStatus.FAILED),
        (4, None, CheckStatus.PASSED),
    ],
)
def test_lines_alone_with_a_save_each_step(
    first_step: int, made: int | None, expected: CheckStatus, records: Any
) -> None:
    """Save 3 is whole and a line names step 3: the life did that step again only if it made that save again."""
    reference = with_a_save_each_step(records)
    reference = replace(reference, profile=replace(reference.profile, uses_ticks=False))
    acks = written_again(records, made, 6, at=1) if made else ()
    outcome = silent(records, 3, 4, first_step=first_step, last_step=6, steps=7 - first_step, acknowledgements=acks)
    assert ALL_CHECKS[CheckName.LOST_WORK](reference, (outcome,), records.target).status is expected


def test_unknown_content_is_not_judged(records: Any) -> None:
    """A target that is not deterministic has contents of which nobody knows the age."""
    outcome = records.altered(records.lineage(4, 2), 0, crash_state=(records.file("ck.pt", "other"),))
    assert run(CheckName.LOST_WORK, records, outcome).status is CheckStatus.NOT_RUN


# --- did_not_finish -------------------------------------------------------------------------------


def test_an_early_end_with_status_0(records: Any) -> None:
    """The control is judged too."""
    bad = records.altered(records.control(), -1, last_step=50)
    detail = only(run(CheckName.DID_NOT_FINISH, records, bad))
    assert "the last step shown is step 50, that of the reference is step 60" in detail


def test_a_missing_and_a_damaged_final_file(records: Any) -> None:
    """Both are told by name."""
    missing = records.altered(records.lineage(4, 2), -1, crash_state=records.checkpoints(6))
    assert "final.pt is missing" in only(run(CheckName.DID_NOT_FINISH, records, missing))
    damaged = records.altered(records.lineage(4, 2), -1, crash_state=(records.final(is_whole=False),))
    assert "damaged: final.pt" in only(run(CheckName.DID_NOT_FINISH, records, damaged))


def test_a_life_that_finds_everything_done(records: Any) -> None:
    """A kill after the last save leaves no step to do."""
    outcome = records.lineage(4, 6)
    assert outcome.lives[-1].last_step is None
    assert run(CheckName.DID_NOT_FINISH, records, outcome).status is CheckStatus.PASSED


def test_a_life_that_does_nothing_although_steps_are_left(records: Any) -> None:
    """Without a step line and with only save 2 there, the work is not done."""
    bad = records.altered(records.lineage(4, 2), -1, first_step=None, last_step=None, steps=0)
    assert "step 30" in only(run(CheckName.DID_NOT_FINISH, records, bad))


@pytest.mark.parametrize(
    ("steps", "status"), [(40, CheckStatus.PASSED), (39, CheckStatus.FAILED), (0, CheckStatus.FAILED)]
)
def test_the_sum_of_steps_without_step_lines(steps: int, status: CheckStatus, records: Any) -> None:
    """Steps in the checkpoint plus the last life's own must come to the reference's."""
    profile = replace(records.reference().profile, last_step=None)
    outcome = records.altered(records.lineage(4, 2), -1, first_step=None, last_step=None, steps=steps)
    assert run(CheckName.DID_NOT_FINISH, records, outcome, profile=profile).status is status

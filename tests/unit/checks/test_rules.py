"""Each check passes on good records, fails on the smallest bad ones, and says when it was not run."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.checks.severity import severity_of
from chaos.model import (
    CheckName,
    CheckResult,
    CheckStatus,
    FileRole,
    LifeEnd,
    Outcome,
    Reference,
    SaveProfile,
    Severity,
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


@pytest.mark.parametrize("name", ALL_CHECKS)
def test_every_check_passes_on_good_records(name: CheckName, records: Any) -> None:
    """A campaign in which nothing is wrong passes each check, under the name that the registry gives it."""
    result = run(name, records, *records.outcomes())
    assert result == CheckResult(check=name, status=CheckStatus.PASSED)


@pytest.mark.parametrize(
    "name",
    [name for name in ALL_CHECKS if name not in {CheckName.SAVING_CHANGES_TRAINING, CheckName.UNSAFE_CHECKPOINT}],
)
def test_every_check_of_lineages_is_not_run_without_any(name: CheckName, records: Any) -> None:
    """Where there is no lineage a check says that it was not run, and why."""
    result = run(name, records)
    assert result.status is CheckStatus.NOT_RUN
    assert result.reason


def test_the_registry_is_complete() -> None:
    """Every name of a check has a rule, in the order of the names."""
    assert list(ALL_CHECKS) == list(CheckName)


def test_only_two_checks_are_warnings() -> None:
    """Leaks and unsafe files are warnings, all else is an error."""
    warnings = {name for name in CheckName if severity_of(name) is Severity.WARNING}
    assert warnings == {CheckName.LEAKED_FILES, CheckName.UNSAFE_CHECKPOINT}


# --- no_valid_checkpoint --------------------------------------------------------------------------


def test_survival_needs_a_whole_file(records: Any) -> None:
    """A torn file alone is a violation that names file, size and reason."""
    torn = records.file("ck.pt", "torn", is_whole=False, size_bytes=4096, reason="it ends early")
    bad = records.altered(records.lineage(4, 2), 0, crash_state=(torn,))
    result = run(CheckName.NO_VALID_CHECKPOINT, records, bad)
    assert "ck.pt (4,096 bytes, damaged: it ends early)" in only(result)
    assert (result.violations[0].trial, result.violations[0].life) == (4, 1)


def test_survival_counts_an_empty_folder(records: Any) -> None:
    """No checkpoint file at all is a violation too."""
    bad = records.altered(records.lineage(4, 2), 0, crash_state=())
    assert "no checkpoint file is left" in only(run(CheckName.NO_VALID_CHECKPOINT, records, bad))


def test_survival_does_not_count_final_files(records: Any) -> None:
    """A whole final file is no checkpoint."""
    bad = records.altered(records.lineage(4, 2), 0, crash_state=(records.final(),))
    assert run(CheckName.NO_VALID_CHECKPOINT, records, bad).status is CheckStatus.FAILED


def test_survival_asks_nothing_before_the_first_acknowledgement(records: Any) -> None:
    """A kill in the first save may leave nothing, and such a campaign has not judged survival."""
    result = run(CheckName.NO_VALID_CHECKPOINT, records, records.lineage(4, 0))
    assert result.status is CheckStatus.NOT_RUN


def test_survival_remembers_acknowledgements_of_earlier_lives(records: Any) -> None:
    """A second life that saved nothing yet must not lose what the first one saved."""
    bad = records.altered(records.lineage(4, 2, 2), 1, crash_state=())
    assert run(CheckName.NO_VALID_CHECKPOINT, records, bad).violations[0].life == 2


def test_survival_does_not_judge_unknown_formats(records: Any) -> None:
    """Where nobody can tell about any file, nothing is claimed."""
    unknown = records.file("ck.pt", "raw", is_whole=None, reason="unknown format")
    bad = records.altered(records.lineage(4, 2), 0, crash_state=(unknown,))
    assert run(CheckName.NO_VALID_CHECKPOINT, records, bad).status is CheckStatus.NOT_RUN


def test_survival_ignores_kills_without_evidence(records: Any) -> None:
    """What was not proven to be our kill is not judged as one."""
    life = records.killed(1, 0, 2, evidence=None, crash_state=())
    outcome = records.outcome(4, TrialKind.FAULTED, life, records.finished(2, 2))
    assert run(CheckName.NO_VALID_CHECKPOINT, records, outcome).status is CheckStatus.NOT_RUN


# --- acknowledged_lost ----------------------------------------------------------------------------


def kill_leaving(records: Any, *files: Any) -> Outcome:
    """Return a lineage killed after two acknowledged saves, with `files` left."""
    outcome: Outcome = records.altered(records.lineage(4, 2), 0, crash_state=files)
    return outcome


@pytest.mark.parametrize("digest", ["content2", "content3", "content6", "never seen"])
def test_acknowledged_content_or_newer_is_kept(digest: str, records: Any) -> None:
    """The acknowledged content, that of a later save, and content that nobody saw before are new enough."""
    outcome = kill_leaving(records, records.file("anything.pt", digest))
    assert run(CheckName.ACKNOWLEDGED_LOST, records, outcome).status is CheckStatus.PASSED


def test_acknowledged_content_is_lost(records: Any) -> None:
    """Only the save before the acknowledged one is left."""
    outcome = kill_leaving(records, records.file("ck.prev.pt", "content1"), records.file("ck.pt", "x", is_whole=False))
    detail = only(run(CheckName.ACKNOWLEDGED_LOST, records, outcome))
    assert "acknowledged step 20" in detail
    assert "save 1 of the reference" in detail


def test_acknowledged_leaves_total_loss_to_survival(records: Any) -> None:
    """With nothing whole, this check is not run: the other one tells."""
    outcome = kill_leaving(records, records.file("ck.pt", "x", is_whole=False))
    assert run(CheckName.ACKNOWLEDGED_LOST, records, outcome).status is CheckStatus.NOT_RUN


def test_acknowledged_before_it_was_written(records: Any) -> None:
    """A printed step that the reference knows demands its content, though the file was never there."""
    acks = (records.acknowledgement(1), replace(records.acknowledgement(2), files=records.checkpoints(1)))
    life = records.killed(1, 0, 2, acknowledgements=acks, crash_state=records.checkpoints(1))
    outcome = records.outcome(4, TrialKind.FAULTED, life, records.finished(2, 1))
    assert run(CheckName.ACKNOWLEDGED_LOST, records, outcome).status is CheckStatus.FAILED


def test_acknowledged_order_of_the_lineage_alone(records: Any) -> None:
    """Content that the reference never wrote is ordered by the lineage's own acknowledgements."""
    mine = {n: (records.file("ck.pt", f"own{n}"),) for n in (1, 2)}
    acks = tuple(replace(records.acknowledgement(n), files=mine[n]) for n in (1, 2))
    life = records.killed(1, 0, 2, acknowledgements=acks)
    for left, status in ((1, CheckStatus.FAILED), (2, CheckStatus.PASSED)):
        outcome = records.outcome(4, TrialKind.FAULTED, replace(life, crash_state=mine[left]))
        assert run(CheckName.ACKNOWLEDGED_LOST, records, outcome).status is status


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


# --- silent_divergence, saving_changes_training ---------------------------------------------------


def test_other_bits(records: Any) -> None:
    """Digests of both and the kills are told; missing and damaged files are another check's."""
    bad = records.altered(records.lineage(4, 2), -1, crash_state=(records.final("other"),))
    detail = only(run(CheckName.SILENT_DIVERGENCE, records, bad))
    assert "has digest other, that of the reference bits" in detail
    assert str(bad.trial.crash_points[0]) in detail
    for state in ((), (records.final("other", is_whole=False),)):
        outcome = records.altered(records.lineage(4, 2), -1, crash_state=state)
        assert run(CheckName.SILENT_DIVERGENCE, records, outcome).status is CheckStatus.NOT_RUN


def test_other_bits_of_a_target_that_is_not_deterministic(records: Any) -> None:
    """Nothing can be said, and the reason names the tensors."""
    bad = records.altered(records.lineage(4, 2), -1, crash_state=(records.final("other"),))
    result = run(CheckName.SILENT_DIVERGENCE, records, bad, deterministic=False, differing_tensors=("w.0",))
    assert result.status is CheckStatus.NOT_RUN
    assert "w.0" in result.reason


def test_saving_changes_training(records: Any) -> None:
    """Other bits without saves are a violation; without such a run nothing is said."""
    name = CheckName.SAVING_CHANGES_TRAINING
    assert "final.pt has digest x without saving" in only(run(name, records, no_save_final=(records.final("x"),)))
    assert run(name, records, no_save_final=None).status is CheckStatus.NOT_RUN
    assert run(name, records, no_save_final=()).status is CheckStatus.NOT_RUN
    assert run(name, records, no_save_final=(records.final("x"),), deterministic=False).status is CheckStatus.NOT_RUN


# --- orphan_processes, leaked_files, unsafe_checkpoint ----------------------------------------------


def test_a_process_that_goes_on(records: Any) -> None:
    """Its command line is told."""
    bad = records.altered(records.control(), -1, orphans=("python worker.py",))
    assert "python worker.py" in only(run(CheckName.ORPHAN_PROCESSES, records, bad))


def with_leftovers(records: Any, other: Any, *, key: str = "") -> tuple[Outcome, ...]:
    """Return a campaign whose lineages leave the files named by `other(kills)`, temporaries where `key` is given."""
    changed = []
    for outcome in records.outcomes():
        names = tuple(other(outcome.kills_landed))
        if key:
            files = [records.file(name, name, FileRole.TEMPORARY, key=key) for name in names]
            changes = {"crash_state": (*outcome.lives[-1].crash_state, *files)}
        else:
            changes = {"other_files": names}
        changed.append(records.altered(outcome, -1, **changes))
    return tuple(changed)


@pytest.mark.parametrize("key", ["", "ck.pt.{any}"])
def test_files_that_grow_with_kills(key: str, records: Any) -> None:
    """One more temporary per kill is a leak, whether it is known as a temporary or not."""
    outcomes = with_leftovers(records, lambda kills: [f"ck.pt.{n}" for n in range(kills)], key=key)
    assert "3 after 3 kills, at most 1 after one or none" in only(run(CheckName.LEAKED_FILES, records, *outcomes))


@pytest.mark.parametrize(
    "names",
    [
        lambda kills: ["out.txt", "vocab.json"][: 1 + (kills > 0)],
        lambda kills: [f"run{n}.log" for n in range(kills + 1)],
        lambda kills: [f"events.out.{n}" for n in range(kills + 1)],
        lambda kills: [f"metrics_{n}.csv" for n in range(kills + 1)],
        lambda kills: ["ck.pt.tmp"] if kills else [],
        lambda kills: ["ck.pt.tmp"] if kills > 1 else [],
    ],
    ids=["fixed", "log", "events", "one log a life", "fixed temporary", "fixed temporary after many"],
)
def test_files_that_are_no_leak(names: Any, records: Any) -> None:
    """Logs of each life, and names that are written over, do not grow without end."""
    outcomes = with_leftovers(records, names)
    assert run(CheckName.LEAKED_FILES, records, *outcomes).status is CheckStatus.PASSED


def test_leaks_need_a_control_and_many_kills(records: Any) -> None:
    """Without a lineage of three kills, or one of none, there is nothing to compare."""
    control, one, _, three = records.outcomes()
    assert run(CheckName.LEAKED_FILES, records, control, one).status is CheckStatus.NOT_RUN
    assert run(CheckName.LEAKED_FILES, records, one, three).status is CheckStatus.NOT_RUN
    leaking = records.altered(three, -1, other_files=("tmp.1", "tmp.2"))
    assert "2 after 3 kills, at most 0" in only(run(CheckName.LEAKED_FILES, records, control, leaking))


def test_an_unsafe_checkpoint(records: Any) -> None:
    """The refused files are named; where nobody tried, nothing is said."""
    assert "ck.pt" in only(run(CheckName.UNSAFE_CHECKPOINT, records, unsafe=("ck.pt",)))
    assert run(CheckName.UNSAFE_CHECKPOINT, records, unsafe=None).status is CheckStatus.NOT_RUN

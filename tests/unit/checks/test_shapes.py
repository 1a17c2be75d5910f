"""Targets of other shapes: several files a save, no step lines, lines now and then, names with steps, files of logs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.checks.lineage import counterpart
from chaos.checks.recency import order_of
from chaos.model import CheckName, CheckStatus, FileRole, FileState, LifeEnd, Outcome, Reference, TrialKind

PASSED, FAILED, NOT_RUN = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.NOT_RUN


def status(name: CheckName, records: Any, reference: Reference, *outcomes: Outcome) -> CheckStatus:
    """Return what one check says."""
    return ALL_CHECKS[name](reference, outcomes, records.target).status


def with_first_run(records: Any, *, profile: dict[str, Any] | None = None, **changes: Any) -> Reference:
    """Return a reference whose runs' lives and profile are changed."""
    reference: Reference = records.reference()
    runs = tuple(records.altered(run, 0, **changes) for run in reference.outcomes)
    return replace(reference, outcomes=runs, profile=replace(reference.profile, **(profile or {})))


# --- a save of two files --------------------------------------------------------------------------------


def pair(records: Any, model: int, optim: int) -> tuple[FileState, ...]:
    """Return a checkpoint of two files, each from a save of its own; 0 is a torn one."""
    return tuple(
        records.file(f"ck_{name}.pt", f"{name}{save}", is_whole=save > 0)
        for name, save in (("model", model), ("optim", optim))
    )


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ((2, 2), PASSED),
        ((3, 2), PASSED),
        ((3, 3), PASSED),
        ((2, 0), FAILED),
        ((3, 0), FAILED),
        ((1, 2), FAILED),
        ((1, 1), FAILED),
        ((0, 0), NOT_RUN),
    ],
)
def test_each_file_of_an_acknowledged_save_is_kept(left: tuple[int, int], expected: CheckStatus, records: Any) -> None:
    """Every file is there as acknowledged, or the same file of a newer save."""
    acks = tuple(replace(ack, files=pair(records, ack.save, ack.save)) for ack in records.acknowledgements(1, 6))
    reference = with_first_run(records, acknowledgements=acks, crash_state=pair(records, 6, 6))
    life = records.killed(1, 0, 2, acknowledgements=acks[:2], crash_state=pair(records, *left))
    outcome = records.outcome(4, TrialKind.FAULTED, life, records.finished(2, 2))
    assert status(CheckName.ACKNOWLEDGED_LOST, records, reference, outcome) is expected


def test_an_older_save_that_is_complete_is_the_newest(records: Any) -> None:
    """A new model beside an old optimizer is no newest save: to resume from the older pair loses nothing."""
    acks = tuple(replace(ack, files=pair(records, ack.save, ack.save)) for ack in records.acknowledgements(1, 6))
    order = order_of(with_first_run(records, acknowledgements=acks, crash_state=pair(records, 6, 6)))
    both = (*pair(records, 2, 2), records.file("ck_model_new.pt", "model3"))
    newest = order.newest_save(both)
    assert newest is not None
    assert newest.ordinal == 2


def shards(records: Any, left: int, right: int) -> tuple[FileState, ...]:
    """Return the shards of two ranks, which have equal content after the same save; 0 is a missing one."""
    return tuple(records.file(f"ck_rank{rank}.pt", f"both{save}") for rank, save in enumerate((left, right)) if save)


def with_shards(records: Any) -> Reference:
    """Return a reference that saves a shard for each of two ranks."""
    acks = tuple(replace(ack, files=shards(records, ack.save, ack.save)) for ack in records.acknowledgements(1, 6))
    return with_first_run(records, acknowledgements=acks, crash_state=shards(records, 6, 6))


@pytest.mark.parametrize(("left", "right", "newest"), [(1, 0, None), (2, 1, None), (2, 2, 2)])
def test_equal_shards_are_all_needed(left: int, right: int, newest: int | None, records: Any) -> None:
    """A save of two ranks is there only with both shards, though they have the same content."""
    found = order_of(with_shards(records)).newest_save(shards(records, left, right))
    assert (found and found.ordinal) == newest


@pytest.mark.parametrize(
    ("state", "expected"), [((2, 2), PASSED), ((3, 2), PASSED), ((0, 2), FAILED), ((1, 2), FAILED)]
)
def test_each_equal_shard_of_an_acknowledged_save_is_kept(
    state: tuple[int, int], expected: CheckStatus, records: Any
) -> None:
    """A shard that is gone is not made good by the other rank's, whose content is the same."""
    acks = tuple(replace(ack, files=shards(records, ack.save, ack.save)) for ack in records.acknowledgements(1, 2))
    life = records.killed(1, 0, 2, acknowledgements=acks, crash_state=shards(records, *state))
    outcome = records.outcome(4, TrialKind.FAULTED, life)
    assert status(CheckName.ACKNOWLEDGED_LOST, records, with_shards(records), outcome) is expected


def test_a_copy_under_another_name_is_needed_once(records: Any) -> None:
    """`latest.pt` beside `ck_10.pt` with the same content is no second part of a save."""
    acks = tuple(
        replace(
            ack, files=(records.file(f"ck_{ack.step}.pt", f"x{ack.save}"), records.file("ck_last.pt", f"x{ack.save}"))
        )
        for ack in records.acknowledgements(1, 6)
    )
    order = order_of(with_first_run(records, acknowledgements=acks, crash_state=acks[-1].files))
    newest = order.newest_save((records.file("ck_30.pt", "x3"), records.file("ck_last.pt", "torn", is_whole=False)))
    assert newest is not None
    assert newest.ordinal == 3


# --- content that the reference never wrote ---------------------------------------------------------------


def test_content_of_ones_own(records: Any) -> None:
    """Newer than the last acknowledged one is enough, and so is the same again."""
    acks = tuple(replace(records.acknowledgement(n), files=(records.file("ck.pt", f"own{n}"),)) for n in (1, 2))
    cases = [(acks, "own3", PASSED), (acks, "own1", FAILED), ((acks[0], *acks, acks[0]), "own1", PASSED)]
    for said, left, expected in cases:
        life = records.killed(1, 0, 2, acknowledgements=said, crash_state=(records.file("ck.pt", left),))
        outcome = records.outcome(4, TrialKind.FAULTED, life)
        assert status(CheckName.ACKNOWLEDGED_LOST, records, records.reference(), outcome) is expected


def test_an_acknowledgement_that_is_not_printed_claims_only_its_files(records: Any) -> None:
    """The target only went on: what had to be there is what was there."""
    acks = (records.acknowledgement(1), replace(records.acknowledgement(2), files=records.checkpoints(1)))
    for is_printed, expected in ((True, FAILED), (False, PASSED)):
        said = (acks[0], replace(acks[1], is_printed=is_printed))
        life = records.killed(1, 0, 2, acknowledgements=said, crash_state=records.checkpoints(1))
        outcome = records.outcome(4, TrialKind.FAULTED, life)
        assert status(CheckName.ACKNOWLEDGED_LOST, records, records.reference(), outcome) is expected


# --- order of saves ---------------------------------------------------------------------------------------


def test_acknowledgements_twice_and_outside_of_saves(records: Any) -> None:
    """A step acknowledged twice is one save, and a line that merely looks like one before the first save is none."""
    acks = records.acknowledgements(1, 6)
    early = replace(acks[0], save=0, step=0, files=())
    twice = replace(acks[-1], save=7)
    order = order_of(with_first_run(records, acknowledgements=(early, *acks, twice)))
    assert [save.step for save in order.saves] == [10, 20, 30, 40, 50, 60]
    assert all(save.is_exact for save in order.saves)


def test_a_last_save_without_acknowledgement(records: Any) -> None:
    """Content seen at the end only is newer than all, and the saves before stay exact."""
    order = order_of(with_first_run(records, acknowledgements=records.acknowledgements(1, 5)))
    assert [save.is_exact for save in order.saves] == [True] * 5 + [False]
    assert order.rank("content6") == 6


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"first_step": 10}, [11, 21]),
        ({"first_step": 0, "last_step": 50}, [10, 20]),
        ({"first_step": None, "last_step": None}, [None, None]),
        ({"profile": {"saves": ()}}, [11, 21]),
        ({"first_step": 10, "last_step": 600}, [10, 210]),
    ],
    ids=["one line in ten", "one line in ten from zero", "no lines", "no counts", "numbers in tens"],
)
def test_numbers_of_the_next_step(changes: dict[str, Any], expected: list[int | None], records: Any) -> None:
    """The next step's number is read off lines and counts together; in doubt it is the smaller one."""
    order = order_of(with_first_run(records, **changes))
    assert [save.next_step for save in order.saves][:2] == expected


def test_numbers_in_strides_without_acknowledged_steps(records: Any) -> None:
    """Lines 10, 20, … 600 for 60 steps: after 10 steps comes 110."""
    acks = tuple(replace(ack, step=None) for ack in records.acknowledgements(1, 6))
    order = order_of(with_first_run(records, first_step=10, last_step=600, acknowledgements=acks))
    assert [save.next_step for save in order.saves] == [110, 210, 310, 410, 510, 610]


# --- where a life began -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "expected"), [(60, FAILED), (61, FAILED), (40, PASSED)])
def test_a_silent_start_from_zero_without_step_lines(steps: int, expected: CheckStatus, records: Any) -> None:
    """Nothing whole is left, and the count of the last life shows a start from 0."""
    outcome = records.altered(records.lineage(4, 2), 0, crash_state=())
    outcome = records.altered(outcome, 1, first_step=None, last_step=None, steps=steps)
    assert status(CheckName.LOST_WORK, records, records.reference(), outcome) is expected


def test_a_life_that_shows_nothing_is_not_judged(records: Any) -> None:
    """Failed or without a probe, no step line, and no save: nobody can tell where it began."""
    silent = {"first_step": None, "last_step": None, "steps": 60, "acknowledgements": ()}
    for changes in ({"exit_status": 1}, {"end": LifeEnd.DEADLINE, "exit_status": None}, {"has_probe": False}):
        outcome = records.altered(records.lineage(4, 2), 1, **silent, **changes)
        assert status(CheckName.LOST_WORK, records, records.reference(), outcome) is NOT_RUN
        gone = records.altered(outcome, 0, crash_state=())
        assert status(CheckName.LOST_WORK, records, records.reference(), gone) is NOT_RUN


def test_a_line_with_the_right_number_clears_a_life(records: Any) -> None:
    """Its count of ticks alone would look like an older checkpoint."""
    outcome = records.altered(records.lineage(4, 2), 1, steps=55)
    assert status(CheckName.LOST_WORK, records, records.reference(), outcome) is PASSED


# --- the end ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "expected"), [(40, PASSED), (39, FAILED)])
def test_lines_now_and_then_do_not_tell_the_end(steps: int, expected: CheckStatus, records: Any) -> None:
    """A life counts its lines from its own start: its last number differs, the count of steps does not."""
    reference = with_first_run(records, first_step=7, last_step=56, profile={"last_step": 56})
    outcome = records.altered(records.lineage(4, 2), 1, first_step=27, last_step=55, steps=steps)
    assert status(CheckName.DID_NOT_FINISH, records, reference, outcome) is expected


def test_lines_as_the_clock_tell_the_end(records: Any) -> None:
    """Without ticks the last number is what counts, whatever its stride."""
    reference = with_first_run(records, first_step=7, last_step=56, profile={"last_step": 56, "uses_ticks": False})
    for last_step, expected in ((56, PASSED), (49, FAILED)):
        outcome = records.altered(records.lineage(4, 2), 1, first_step=21, last_step=last_step)
        assert status(CheckName.DID_NOT_FINISH, records, reference, outcome) is expected


def test_a_control_that_says_nothing(records: Any) -> None:
    """It found no save, so it must have shown its steps."""
    outcome = records.altered(records.control(), 0, first_step=None, last_step=None)
    assert status(CheckName.DID_NOT_FINISH, records, records.reference(), outcome) is FAILED


def test_the_last_save_may_come_before_the_last_step(records: Any) -> None:
    """To find the last save whole is no excuse where steps come after it."""
    reference = with_first_run(records, acknowledgements=records.acknowledgements(1, 5), crash_state=())
    outcome = records.altered(records.lineage(4, 5), 1, first_step=None, last_step=None, steps=0)
    early = records.altered(outcome, 0, last_step=50)
    assert status(CheckName.DID_NOT_FINISH, records, reference, early) is FAILED
    assert status(CheckName.DID_NOT_FINISH, records, reference, outcome) is PASSED


@pytest.mark.parametrize("digest", ["content2", "unknown"])
def test_the_sum_needs_a_known_start_and_a_clock(digest: str, records: Any) -> None:
    """Unknown content, or a life without a probe, gives no sum."""
    reference = with_first_run(records, profile={"last_step": None})
    state = (records.file("ck.pt", digest),)
    outcome = records.altered(records.altered(records.lineage(4, 2), 0, crash_state=state), 1, steps=0)
    assert status(CheckName.DID_NOT_FINISH, records, reference, outcome) is (FAILED if digest == "content2" else PASSED)
    blind = records.altered(outcome, 1, has_probe=False)
    assert status(CheckName.DID_NOT_FINISH, records, reference, blind) is PASSED


# --- files --------------------------------------------------------------------------------------------------


def test_counterparts(records: Any) -> None:
    """By path first; by key only where that is beyond doubt; never across roles."""
    ten: FileState
    twenty: FileState
    ten, twenty = (records.file(f"m-{n}.pt", "x", FileRole.FINAL, key="m-{step}.pt") for n in (10, 20))
    other = records.file("m-20.pt", "x", FileRole.CHECKPOINT, key="m-{step}.pt")
    assert counterpart(twenty, (ten, twenty)) is twenty
    assert counterpart(twenty, (ten,)) is ten
    assert counterpart(twenty, (ten, replace(ten, path="m-30.pt"))) is None
    assert counterpart(twenty, (other,)) is None
    assert counterpart(twenty, (records.final(),)) is None


@pytest.mark.parametrize(
    ("pattern", "ignore", "expected"),
    [
        ("part_{}.bin", (), FAILED),
        ("part_{}.bin", ("part_*",), PASSED),
        ("logs/{}/out.log", (), PASSED),
        ("a/part_{}.bin", ("part_*",), PASSED),
    ],
)
def test_a_file_for_each_life(pattern: str, ignore: tuple[str, ...], expected: CheckStatus, records: Any) -> None:
    """One file a life is a leak unless it is a log or ignored, by its path or by its name."""
    outcomes = tuple(
        records.altered(outcome, -1, other_files=tuple(pattern.format(n) for n in range(len(outcome.lives))))
        for outcome in records.outcomes()
    )
    target = replace(records.target, ignore=ignore)
    assert ALL_CHECKS[CheckName.LEAKED_FILES](records.reference(), outcomes, target).status is expected


def test_two_logs_for_each_life_are_a_leak(records: Any) -> None:
    """A name that merely looks like a log is excused at one a life, not beyond."""
    outcomes = tuple(
        records.altered(outcome, -1, other_files=tuple(f"metric{n}.bin" for n in range(2 * len(outcome.lives))))
        for outcome in records.outcomes()
    )
    assert status(CheckName.LEAKED_FILES, records, records.reference(), *outcomes) is FAILED


def test_as_many_files_after_one_kill_are_no_growth(records: Any) -> None:
    """Two leftovers after one kill and two after three: bounded."""
    outcomes = tuple(
        records.altered(outcome, -1, other_files=("tmp.1", "tmp.2") if outcome.kills_landed else ())
        for outcome in records.outcomes()
    )
    assert status(CheckName.LEAKED_FILES, records, records.reference(), *outcomes) is PASSED


def test_orphans_are_not_run_where_no_life_ended_by_itself(records: Any) -> None:
    """Our kill takes all processes, so only other ends can show an orphan."""
    outcome = records.outcome(4, TrialKind.FAULTED, records.killed(1, 0, 2))
    assert status(CheckName.ORPHAN_PROCESSES, records, records.reference(), outcome) is NOT_RUN


def test_a_crash_point_is_named_only_for_a_landed_kill(records: Any) -> None:
    """What follows a kill without proof is not blamed on it."""
    evidence = records.evidence(records.point(3), was_alive=False)
    outcome = records.altered(records.altered(records.lineage(4, 2), 0, evidence=evidence), 1, exit_status=1)
    (violation,) = ALL_CHECKS[CheckName.RESUME_CRASHED](records.reference(), (outcome,), records.target).violations
    assert violation.crash_point is None


@pytest.mark.parametrize(("first_step", "expected"), [(1, FAILED), (11, PASSED), (None, NOT_RUN)])
def test_a_killed_life_after_a_total_loss(first_step: int | None, expected: CheckStatus, records: Any) -> None:
    """Only its step lines can show a start from 0; one that begins later found something to resume from."""
    outcome = records.altered(records.lineage(4, 2, 3), 0, crash_state=())
    outcome = records.altered(outcome, 1, first_step=first_step, steps=60, crash_state=())
    outcome = replace(outcome, lives=outcome.lives[:2])
    assert status(CheckName.LOST_WORK, records, records.reference(), outcome) is expected

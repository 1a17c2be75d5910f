"""The age of a checkpoint is read off its content, for targets of several shapes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks.recency import SaveOrder, order_of
from chaos.model import FileState, Reference


def with_first_run(records: Any, **changes: Any) -> Reference:
    """Return a reference whose first run's life is changed."""
    reference: Reference = records.reference()
    first = records.altered(reference.outcomes[0], 0, **changes)
    return replace(reference, outcomes=(first, *reference.outcomes[1:]))


def test_saves_of_the_reference(records: Any) -> None:
    """Each save has its own content, its steps, and the step line that follows it."""
    order = order_of(records.reference())
    assert [save.digests for save in order.saves] == [(f"content{n}",) for n in range(1, 7)]
    assert [save.ticks_before for save in order.saves] == [10, 20, 30, 40, 50, 60]
    assert [save.next_step for save in order.saves] == [11, 21, 31, 41, 51, 61]
    assert all(save.is_exact for save in order.saves)


def test_newest_save_is_by_content_not_by_name(records: Any) -> None:
    """The names of the files are of no account, damaged ones are not looked at."""
    order = order_of(records.reference())
    files = (
        records.file("b", "content3"),
        records.file("a", "content1"),
        records.file("c", "content5", is_whole=False),
    )
    newest = order.newest_save(files)
    assert newest is not None
    assert newest.ordinal == 3
    assert order.newest_save((records.file("ck.pt", "unknown"),)) is None


def test_step_lines_that_count_from_zero(records: Any) -> None:
    """`step 0` is the first of 60: after 10 steps, saved as `step 10` or as `step 9`, comes `step 10`."""
    for shift in (0, 1):
        acks = tuple(replace(ack, step=ack.step - shift) for ack in records.acknowledgements(1, 6))
        order = order_of(with_first_run(records, first_step=0, last_step=59, acknowledgements=acks))
        assert order.saves[0].next_step in {9, 10}
        assert [save.next_step for save in order.saves] == [save.step for save in order.saves]


def test_epochs_are_no_steps(records: Any) -> None:
    """Acknowledged epoch numbers do not pull the step lines back."""
    acks = tuple(replace(ack, step=ack.save) for ack in records.acknowledgements(1, 6))
    order = order_of(with_first_run(records, acknowledgements=acks))
    assert [save.next_step for save in order.saves][1:] == [21, 31, 41, 51, 61]


@pytest.mark.parametrize("uses_ticks", [True, False])
@pytest.mark.parametrize(("first_step", "last_step"), [(1, 20), (0, 19), (1, 30), (0, 29), (5, 20)])
@pytest.mark.parametrize("is_global", [True, False])
def test_step_lines_that_begin_anew_in_each_epoch(
    uses_ticks: bool,  # noqa: FBT001 - a parameter of a test
    first_step: int,
    last_step: int,
    is_global: bool,  # noqa: FBT001 - a parameter of a test
    records: Any,
) -> None:
    """`epoch 2 step 3/20` is not of the clock of `saved step 30`, nor of `saved epoch 2`: no number follows a save."""
    acks = tuple(replace(ack, step=ack.step if is_global else ack.save) for ack in records.acknowledgements(1, 6))
    reference = with_first_run(records, first_step=first_step, last_step=last_step, acknowledgements=acks)
    order = order_of(replace(reference, profile=replace(reference.profile, uses_ticks=uses_ticks)))
    assert [save.next_step for save in (order.start, *order.saves)] == [None] * 7
    assert [save.ticks_before for save in order.saves] == [10, 20, 30, 40, 50, 60]


def test_a_few_lines_in_each_epoch(records: Any) -> None:
    """Lines 30, 60, 90 of 100 in two epochs look like a stride; `saved step 120` shows that they are none."""
    acks = tuple(replace(ack, step=ack.save * 40) for ack in records.acknowledgements(1, 5))
    reference = with_first_run(records, first_step=30, last_step=90, acknowledgements=acks)
    order = order_of(replace(reference, profile=replace(reference.profile, uses_ticks=False, total_steps=6)))
    assert {save.next_step for save in order.saves} == {None}


@pytest.mark.parametrize(
    ("first_step", "last_step", "total"), [(1, 60, 60), (0, 59, 60), (10, 60, 6), (0, 50, 6), (1, 60, 61), (7, 60, 20)]
)
def test_step_lines_without_ticks_are_one_clock(first_step: int, last_step: int, total: int, records: Any) -> None:
    """One line a step, one in ten, one too many, now and then: the number after a save is known."""
    reference = with_first_run(records, first_step=first_step, last_step=last_step)
    order = order_of(replace(reference, profile=replace(reference.profile, uses_ticks=False, total_steps=total)))
    assert None not in [save.next_step for save in order.saves]


def test_a_background_writer_begins_late(records: Any) -> None:
    """The printed step says what is in the file, not the count when the writer came to write it."""
    reference = records.reference()
    late = tuple(replace(save, ticks_before=save.ticks_before + 3) for save in reference.profile.saves)
    order = order_of(replace(reference, profile=replace(reference.profile, saves=late)))
    assert [save.next_step for save in order.saves] == [11, 21, 31, 41, 51, 61]
    assert [save.ticks_before for save in order.saves] == [10, 20, 30, 40, 50, 60]


def test_acknowledged_before_written(records: Any) -> None:
    """The n-th content is that of the n-th acknowledgement although it is seen at the next one only."""
    acks = tuple(replace(ack, files=records.checkpoints(ack.save - 1)) for ack in records.acknowledgements(1, 6))
    order = order_of(with_first_run(records, acknowledgements=acks))
    assert [(save.step, save.digests) for save in order.saves] == [(n * 10, (f"content{n}",)) for n in range(1, 7)]


def test_an_acknowledgement_without_content_makes_no_claim(records: Any) -> None:
    """With one acknowledgement too many, contents are given the older save and none is exact."""
    first = replace(records.acknowledgement(1), step=0, files=())
    acks = (first, *(replace(ack, save=ack.save + 1) for ack in records.acknowledgements(1, 6)))
    order = order_of(with_first_run(records, acknowledgements=acks))
    assert [save.step for save in order.saves] == [0, 10, 20, 30, 40, 50]
    assert not any(save.is_exact for save in order.saves)


def two_files(records: Any, save: int) -> tuple[FileState, ...]:
    """Return a checkpoint of two files, the second a pointer of a format that nobody knows."""
    return (records.file("ck.pt", f"content{save}"), records.file("ck.latest", f"name{save}", is_whole=None))


@pytest.mark.parametrize("is_repeated", [True, False])
def test_a_pointer_file_completes_a_save(is_repeated: bool, records: Any) -> None:  # noqa: FBT001 - a parameter of a test
    """A save is complete once its pointer is written, if the pointer's bytes are the same in both references."""
    acks = tuple(replace(ack, files=two_files(records, ack.save)) for ack in records.acknowledgements(1, 6))
    state = two_files(records, 6)
    reference = with_first_run(records, acknowledgements=acks, crash_state=state)
    if is_repeated:
        reference = replace(reference, outcomes=(reference.outcomes[0],) * 2)
    newest = order_of(reference).newest_save((records.file("ck.pt", "content3"), *two_files(records, 2)))
    assert newest is not None
    assert newest.ordinal == (2 if is_repeated else 3)


def test_no_reference_no_order(records: Any) -> None:
    """Without a run or an acknowledgement nothing has an age."""
    assert order_of(records.reference(outcomes=())) == SaveOrder()
    assert order_of(with_first_run(records, acknowledgements=())) == SaveOrder()

"""Batches that are seen again or left out after a restart: what proves it, and what proves nothing."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chaos.model import CheckName, CheckStatus, StepRecord

TOTAL = 60
SAVED = 30
EPOCH = 10


def names(first: int, last: int) -> list[str]:
    """Return the reference's batches of some steps."""
    return [f"batch{number}" for number in range(first, last + 1)]


def test_the_same_data_passes(records: Any, story: Any) -> None:
    """A lineage that is the reference piece by piece has seen each sample as often."""
    assert story(records).statuses() == {CheckStatus.PASSED}


def test_a_lineage_that_diverged_with_the_same_data_passes(records: Any, story: Any) -> None:
    """What was lost was not the data."""
    assert story(records).resumed(story.diverged).statuses() == {CheckStatus.PASSED}


def test_data_from_the_start_are_seen_again(records: Any, story: Any) -> None:
    """The first step after the resume is named, the step whose batch it got, and how many come again."""
    found = story(records).fed(names(1, 30)).found()
    assert found.keys() == {CheckName.DATA_REPEATED}
    violation = found[CheckName.DATA_REPEATED]
    assert (violation.trial, violation.life, violation.step) == (4, 2, 31)
    assert violation.crash_point is not None
    assert violation.detail == (
        "Step 31 was given the data of step 1 of the reference: 30 batches are seen again in life 2, "
        "those of steps 1 to 30."
    )


def test_one_batch_seen_again_is_found(records: Any, story: Any) -> None:
    """A position that is saved one batch too early repeats that batch."""
    (violation,) = story(records).fed(names(30, 59)).found().values()
    assert violation.check is CheckName.DATA_REPEATED
    assert "1 batch is seen again in life 2, that of step 30" in violation.detail


def test_batches_that_were_fetched_ahead_are_skipped(records: Any, story: Any) -> None:
    """A loader's position that is four batches ahead leaves four out."""
    (violation,) = story(records).fed([*names(35, 60), *names(61, 64)]).found().values()
    assert (violation.check, violation.step) == (CheckName.DATA_SKIPPED, 31)
    assert "4 batches are left out in life 2, those of steps 31 to 34" in violation.detail


def test_a_skip_in_later_epochs_is_found_at_its_step(records: Any, story: Any) -> None:
    """Epochs that begin late show nothing until the first of them begins."""
    batches = [*names(31, 40), *names(44, 50), *names(54, 60), *(f"batch{n}" for n in range(64, 70))]
    (violation,) = story(records).fed(batches).found().values()
    assert (violation.check, violation.step) == (CheckName.DATA_SKIPPED, 41)
    assert "those of steps 41 to 43" in violation.detail


def test_both_findings_in_one_lineage(records: Any, story: Any) -> None:
    """What is seen again and then jumps ahead beyond what was due is both."""
    found = story(records).fed([*names(21, 30), *names(46, 65)]).found()
    assert {name: violation.step for name, violation in found.items()} == {
        CheckName.DATA_REPEATED: 31,
        CheckName.DATA_SKIPPED: 41,
    }


def test_a_jump_back_to_where_it_should_be_leaves_nothing_unsaid(records: Any, story: Any) -> None:
    """After ten batches again the data go on where they would be by then: ten were never seen."""
    found = story(records).fed([*names(21, 30), *names(41, 60)]).found()
    assert found.keys() == {CheckName.DATA_REPEATED, CheckName.DATA_SKIPPED}
    assert "those of steps 31 to 40" in found[CheckName.DATA_SKIPPED].detail


@pytest.mark.parametrize(
    "batches",
    [
        [f"never seen {number}" for number in range(30)],
        [*names(31, 40), "never seen", *names(42, 60)],
        [*names(31, 31), *reversed(names(32, 60))],
        [*names(41, 50), *names(31, 40), *names(51, 60)],
        [*names(31, 59), "batch7 again"],
    ],
    ids=["augmented", "one-unknown", "reversed", "blocks", "end"],
)
def test_what_proves_nothing_is_not_judged(batches: list[str], records: Any, story: Any) -> None:
    """Batches that the reference never saw, or saw as often in another order, are neither a finding nor a pass."""
    assert story(records).fed(batches).statuses() == {CheckStatus.NOT_RUN}


def test_one_batch_ahead_at_the_very_end_is_no_skip(records: Any, story: Any) -> None:
    """A single batch that comes too early may only be out of order."""
    assert story(records).fed([*names(31, 58), "batch60", "batch59"]).found() == {}


def test_full_batch_training_passes(records: Any, story: Any) -> None:
    """The same batch at each step is what the reference saw too."""
    told = story(records, story.given_batches(["all"] * TOTAL)).resumed(story.diverged)
    assert told.statuses() == {CheckStatus.PASSED}


def test_an_epoch_that_begins_anew(records: Any, story: Any) -> None:
    """Where each epoch has the same order, the batches of the broken epoch come again; that is no skip to the next."""
    cycle = [f"b{number % EPOCH}" for number in range(TOTAL)]
    told = story(records, story.given_batches(cycle))
    told.lives = [told.expected[:36], tuple(story.diverged(step, n) for n, step in enumerate(told.expected[30:]))]
    assert told.statuses() == {CheckStatus.PASSED}
    told = story(records, story.given_batches([f"b{(number + 4) % EPOCH}" for number in range(TOTAL)]))
    found = told.fed([f"b{(number + 4) % EPOCH}" for number in range(30)]).found()
    assert found == {}  # step 31 begins where step 1 did


@pytest.mark.parametrize(("ahead", "name"), [(3, CheckName.DATA_SKIPPED), (-3, CheckName.DATA_REPEATED)])
def test_a_few_batches_off_in_a_fixed_order(ahead: int, name: CheckName, records: Any, story: Any) -> None:
    """In epochs that are all the same the nearest place is taken, if the order did not begin anew."""
    cycle = [f"b{number % 17}" for number in range(TOTAL + 9)]
    found = story(records, story.given_batches(cycle[:TOTAL])).fed(cycle[SAVED + ahead :][:30]).found()
    assert found.keys() == {name}
    assert found[name].step == 31


def test_the_start_of_a_fixed_order_is_a_repetition(records: Any, story: Any) -> None:
    """The first batch in the middle of an epoch is that epoch begun anew, though the next one looks the same."""
    cycle = [f"b{number % 17}" for number in range(TOTAL)]
    found = story(records, story.given_batches(cycle)).fed(cycle[:30]).found()
    assert found.keys() == {CheckName.DATA_REPEATED}
    assert "the data of step 18 of the reference: 13 batches" in found[CheckName.DATA_REPEATED].detail


@given(
    seed=st.integers(0, 10**6), saved=st.integers(3, 50), shift=st.integers(-40, 40), known=st.sampled_from([1, 3, 400])
)
def test_a_planted_shift_is_found(records: Any, story: Any, seed: int, saved: int, shift: int, known: int) -> None:
    """Any shift of the batches is found at its step with its number, and nothing else is."""
    shift = max(-saved, min(shift, 58 - saved))
    drawn = Random(seed)
    order = [f"{number} {drawn.random() if number % known == 0 else ''}" for number in range(TOTAL)]
    told = story(records, story.given_batches(order))
    moved = (order + [f"later {n}" for n in range(TOTAL)])[saved + shift :]
    late = [replace(story.diverged(step, n), batches=(moved[n],)) for n, step in enumerate(told.expected[saved:])]
    told.lives = [told.expected[: saved + 1], tuple(late)]
    found = told.found()
    wanted = {CheckName.DATA_REPEATED} if shift < 0 else {CheckName.DATA_SKIPPED} if shift else set()
    assert found.keys() == wanted
    assert {violation.step for violation in found.values()} <= {saved + 1}


def test_positions_that_come_again_in_each_part_of_the_data(records: Any, story: Any) -> None:
    """Batches that are the reference's, byte for byte, are known by that: sample 0 of one file is not another's."""

    def of_shard(step: StepRecord, position: int) -> StepRecord:
        return replace(step, samples=(tuple(range(position % 4 * 4, position % 4 * 4 + 4)),))

    told = story(records, of_shard)
    assert told.statuses() == {CheckStatus.PASSED}
    again = told.resumed(lambda step, n: replace(told.expected[n], components=step.components))
    assert {name: found.step for name, found in again.found().items()} == {CheckName.DATA_REPEATED: 31}


def test_a_pass_that_led_to_nothing(records: Any, story: Any) -> None:
    """What a model is given at its start, before it is loaded, is no training: the gradients are the reference's."""

    def with_gradients(step: StepRecord, position: int) -> StepRecord:
        return replace(step, components=step.components | {"gradients": f"g{position}"})

    told = story(records, with_gradients)
    warmed = told.resumed(lambda step, n: replace(step, batches=("b0", *step.batches)) if n == 0 else step)
    assert warmed.statuses() == {CheckStatus.PASSED}

"""Samples that a loader showed: seen again or left out, in whatever batches, or only in another order."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chaos.model import CheckName, CheckStatus

SAVED = 30
SAMPLES = 8


def shuffled(size: int, epochs: int, seed: int = 3) -> list[int]:
    """Return epochs of samples, each in an order of its own."""
    drawn = Random(seed)
    return [number for _ in range(epochs) for number in drawn.sample(range(size), size)]


def test_samples_are_known_though_each_is_augmented_anew(records: Any, story: Any) -> None:
    """Digests say nothing, positions in the data set do."""
    order = shuffled(160, 3)
    told = story(records, story.given_samples(order)).sampled(order[SAVED * SAMPLES :])
    assert told.statuses() == {CheckStatus.PASSED}
    found = story(records, story.given_samples(order)).sampled(order[20 * SAMPLES : 50 * SAMPLES]).found()
    assert found.keys() == {CheckName.DATA_REPEATED}
    first = ", ".join(map(str, order[20 * SAMPLES :][:3]))
    assert f"80 samples ({first} and 77 more) are seen again" in found[CheckName.DATA_REPEATED].detail


def test_samples_that_are_skipped_within_a_batch(records: Any, story: Any) -> None:
    """Three samples left out make every later batch unlike any of the reference's."""
    order = shuffled(600, 1)
    after = order[SAVED * SAMPLES + 3 :]
    (violation,) = story(records, story.given_samples(order[:480])).sampled(after).found().values()
    assert (violation.check, violation.step) == (CheckName.DATA_SKIPPED, 31)
    assert "3 samples (" in violation.detail


def test_a_new_shuffle_in_the_middle_of_an_epoch(records: Any, story: Any) -> None:
    """Some of its samples are seen again, others never."""
    order = shuffled(600, 1)
    again = shuffled(600, 1, seed=4)[: 30 * SAMPLES]
    found = story(records, story.given_samples(order[:480])).sampled(again).found()
    assert {name: violation.step for name, violation in found.items()} == {
        CheckName.DATA_REPEATED: 31,
        CheckName.DATA_SKIPPED: 31,
    }
    twice = len(set(order[:240]) & set(again))
    assert f"{twice} samples (" in found[CheckName.DATA_REPEATED].detail
    missing = len(set(order[:480]) - set(order[:240]) - set(again))
    assert f"{missing} samples (" in found[CheckName.DATA_SKIPPED].detail


def test_the_rest_of_an_epoch_in_another_order(records: Any, story: Any) -> None:
    """Each sample is seen as often: the order alone is no finding."""
    order = shuffled(480, 1)
    rest = order[240:]
    Random(9).shuffle(rest)
    assert story(records, story.given_samples(order)).sampled(rest).statuses() == {CheckStatus.NOT_RUN}


def test_another_shuffle_of_the_next_epoch(records: Any, story: Any) -> None:
    """An epoch that begins with the life, in another order and not to its end, shows nothing too often."""
    order = shuffled(240, 2)
    other = shuffled(240, 1, seed=8)
    assert story(records, story.given_samples(order)).sampled(other).statuses() == {CheckStatus.NOT_RUN}
    order = shuffled(240, 1) + shuffled(400, 1)
    assert story(records, story.given_samples(order[:480])).sampled(shuffled(400, 1, seed=8)).found() == {}


def test_draws_with_replacement(records: Any, story: Any) -> None:
    """What repeats in the reference by chance may do so in another draw."""
    drawn, other = Random(1), Random(2)
    order = [drawn.randrange(50) for _ in range(480)]
    told = story(records, story.given_samples(order))
    assert told.sampled(order[240:]).statuses() == {CheckStatus.PASSED}
    assert told.sampled([other.randrange(50) for _ in range(240)]).statuses() == {CheckStatus.NOT_RUN}
    assert told.sampled(order[:240]).found().keys() == {CheckName.DATA_REPEATED}


@given(seed=st.integers(0, 10**6), saved=st.integers(1, 59), size=st.integers(8, 700))
def test_the_right_samples_are_never_blamed(records: Any, story: Any, seed: int, saved: int, size: int) -> None:
    """Whatever the data set's size and the place of the save, the intact order passes."""
    order = shuffled(size, 480 // size + 1, seed)
    told = story(records, story.given_samples(order[:480]))
    feed = story.given_samples(order[saved * SAMPLES : 480])
    late = [feed(story.diverged(step, n), n) for n, step in enumerate(told.expected[saved:])]
    told.lives = [told.expected[: saved + 1], tuple(late)]
    assert told.statuses() == {CheckStatus.PASSED}

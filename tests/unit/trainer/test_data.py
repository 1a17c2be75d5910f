"""Both data orders go on exactly from what they captured, wherever that was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer import data
from trainer.data import EpochOrder, RandomOrder, make_order
from trainer.options import Options, Order, TrainerError

SIZE = 1000


def small(order: Order, epoch_batches: int = 0, seed: int = 0) -> Options:
    """Return options that cut 1,000 bytes into 124 sequences of 8, two in a batch."""
    return Options(out=Path("out"), order=order, sequence=8, batch_size=2, epoch_batches=epoch_batches, seed=seed)


@given(order=st.sampled_from(Order), stop=st.integers(0, 40), epoch_batches=st.integers(0, 9), seed=st.integers(0, 99))
@settings(deadline=None)  # the machine may be busy; pytest's own timeout still holds
def test_restored_order_goes_on_exactly(order: Order, stop: int, epoch_batches: int, seed: int) -> None:
    """Stopped after any number of batches and restored into a new object, the next batches are the same."""
    options = small(order, epoch_batches, seed)
    first, second = make_order(SIZE, options), make_order(SIZE, options)
    for _ in range(stop):
        first.draw()
    second.restore(first.capture())
    assert [first.draw().tolist() for _ in range(20)] == [second.draw().tolist() for _ in range(20)]


def test_random_order_stays_within_the_text() -> None:
    """Every position leaves room for the sequence and its last target, and both ends occur."""
    order = RandomOrder(12, small(Order.RANDOM))
    drawn = torch.cat([order.draw() for _ in range(200)])
    assert (drawn.min().item(), drawn.max().item()) == (0, 3)
    assert data.cut(torch.arange(12, dtype=torch.uint8), drawn, 8).shape == (400, 9)


def test_each_epoch_shows_every_sequence_once() -> None:
    """All 124 sequences occur once in an epoch, and another epoch has another order of them."""
    order = EpochOrder(SIZE, small(Order.EPOCH))
    epochs = [torch.cat([order.draw() for _ in range(order.num_batches)]) for _ in range(2)]
    assert all(sorted(epoch.tolist()) == list(range(0, 992, 8)) for epoch in epochs)
    assert not torch.equal(*epochs)


def test_epoch_batches_end_an_epoch_early() -> None:
    """With 3 batches an epoch, the fourth is the first of epoch 1."""
    order = EpochOrder(SIZE, small(Order.EPOCH, 3))
    for _ in range(4):
        order.draw()
    assert order.capture() == {"epoch": 1, "position": 1}


def test_forgotten_skip_begins_later_epochs_late() -> None:
    """The planted bug leaves the interrupted epoch right and skips the same number of batches in the next ones."""
    right, wrong = EpochOrder(SIZE, small(Order.EPOCH, 5)), EpochOrder(SIZE, small(Order.EPOCH, 5))
    for order in (right, wrong):
        order.restore({"epoch": 1, "position": 3})
    wrong.skipped_again = 3
    assert [right.draw().tolist() for _ in range(2)] == [wrong.draw().tolist() for _ in range(2)]
    for _ in range(3):
        right.draw()
    assert [right.draw().tolist() for _ in range(2)] == [wrong.draw().tolist() for _ in range(2)]


def test_text_is_pythons_own_or_a_file(options: Callable[..., Options], text_file: Path) -> None:
    """The default text is English prose of some size; a file is taken as it is; digests tell them apart."""
    default, chosen = data.load_text(options(data=None)), data.load_text(options())
    assert len(default) > 100_000
    assert b"statement" in default
    assert chosen == text_file.read_bytes()
    assert data.digest(default) != data.digest(chosen)


def test_too_short_text_is_refused(options: Callable[..., Options], text_file: Path) -> None:
    """A text that cannot fill a batch is refused with the number of bytes it needs."""
    text_file.write_bytes(b"too short")
    with pytest.raises(TrainerError, match=r"the text has 9 bytes; these sizes need at least 180"):
        data.load_text(options())


def test_held_out_text_is_not_trained_on() -> None:
    """Each byte is in one of the two parts, and the evaluation sees fixed sequences of the held-out one."""
    training, held_out = data.split(bytes(range(250)) * 4)
    assert bytes(training.tolist() + held_out.tolist()) == bytes(range(250)) * 4
    assert len(held_out) == 100
    batch = data.evaluation_batch(held_out, 8)
    assert batch.shape == (16, 9)
    assert (batch[0, 0], batch[-1, -1]) == (held_out[0], held_out[-1])

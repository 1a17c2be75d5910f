"""Distances of weights, steps beside a reference's, rows: the arithmetic of `chaos ablate`."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from chaos.ablation.measuring import Meter
from chaos.ablation.omissions import OMISSIONS, RANDOM, Course, Omission, chosen, require_course
from chaos.ablation.rows import row_of, second_steps
from chaos.ablation.weights import StepWeights, deviation, read_weights
from chaos.errors import HarnessError, UsageError
from chaos.model import TensorDifference
from chaos.reports.ablation import AblationRow
from chaos.reports.ablation_table import shown_count


def _vector(*numbers: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return numbers as weights."""
    return np.array(numbers, np.float32)


def test_deviation_is_of_bits_and_of_numbers() -> None:
    """0.0 and -0.0 are other bits at no distance; the distance is the L2 norm over all elements."""
    found = deviation(_vector(0.0, 1.0, 5.0, 7.0), _vector(-0.0, 1.0, 2.0, 3.0))
    assert (found.elements_differing, found.distance) == (3, 5.0)


def test_deviation_of_equal_weights_is_nothing() -> None:
    """Equal bits are not counted, whatever they mean."""
    same = _vector(0.0, -0.0, 1e-40, math.inf)
    assert deviation(same[:3], same[:3].copy()).distance == 0.0
    assert deviation(same[:3], same[:3].copy()).elements_differing == 0


@pytest.mark.parametrize("precision", [torch.float32, torch.float16])
def test_weights_are_read_by_name(tmp_path: Path, precision: torch.dtype) -> None:
    """Only the model's tensors are read, in the order of their names, widened where they are half."""
    path = tmp_path / "resume.pt"
    model = {"b": torch.tensor([3.0, 4.0], dtype=precision), "a": torch.tensor([[1.0], [2.0]], dtype=precision)}
    torch.save({"model": model, "optimizer": {"state": torch.tensor([9.0])}}, path)
    assert read_weights(path).tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn"])
def test_weights_that_cannot_be_read_are_a_sentence(tmp_path: Path, content: bytes) -> None:
    """A file that is not whole is our failure here: nobody but the trainer writes it."""
    (tmp_path / "resume.pt").write_bytes(content)
    with pytest.raises(HarnessError, match=r"the weights in .*resume.pt cannot be read"):
        read_weights(tmp_path / "resume.pt")


def test_a_meter_holds_each_step_against_the_references(tmp_path: Path) -> None:
    """Distance, elements and length of the update at each step; the first measure is the state resumed from."""
    kept = StepWeights(tmp_path)
    for step, weights in enumerate(((0.0, 0.0), (1.0, 0.0), (2.0, 0.0)), start=1):
        kept.keep(step, _vector(*weights))
    meter = Meter(kept, 1, _vector(0.0, 0.0))
    meter.take(_vector(1.0, 2.0))
    meter.take(_vector(2.0, 0.0))
    steps = meter.steps((3.5, 2.5), (4.0, 3.0, 2.0), (1.0, 1.0))
    assert [one.step for one in steps] == [1, 2, 3]
    assert [one.weight_distance for one in steps] == [0.0, 2.0, 0.0]
    assert [one.elements_differing for one in steps] == [0, 1, 0]
    assert [one.loss_gap for one in steps] == [0.0, 0.5, 0.5]
    assert [one.update_length for one in steps] == [0.0, math.sqrt(5), math.sqrt(5)]
    assert [one.reference_update_length for one in steps] == [0.0, 1.0, 1.0]


def test_a_row_is_put_together_from_its_steps(make_row: Callable[..., AblationRow]) -> None:
    """Jump, change, gaps, the first update's length and the first other step come from the steps alone."""
    steps = make_row("optimizer", gap=0.25).steps
    omission = Omission(name="optimizer", words="the optimizer state", forget=("optimizer",))
    row = row_of(omission, Course(steps=6, seam=3), steps, 2.1, TensorDifference(elements_differing=1))
    assert (row.loss_after, row.loss_jump, round(row.loss_change, 6)) == (2.25, 0.25, 0.15)
    assert (row.mean_gap, row.largest_gap, row.update_ratio) == (0.25, 0.25, 1.25)
    assert (row.first_different_step, row.distance, row.updates) == (4, 1.5, 6)
    assert not row.is_intact
    assert not row.is_same_bits


def test_a_gap_counts_whatever_its_sign(make_row: Callable[..., AblationRow]) -> None:
    """The mean gap is one of absolute values: losses above and below the reference's do not cancel out."""
    begin, high, *_ = make_row("step", gap=0.5).steps
    low = make_row("step", gap=-0.5).steps[2]
    row = row_of(OMISSIONS[5], Course(steps=5, seam=3), (begin, high, low), 2.0, TensorDifference())
    assert (row.mean_gap, row.largest_gap, row.updates) == (0.5, 0.5, 8)


def test_a_row_without_any_difference_has_no_first_step(make_row: Callable[..., AblationRow]) -> None:
    """The intact row has no step that differs."""
    row = row_of(OMISSIONS[0], Course(steps=6, seam=3), make_row("intact", gap=0.0).steps, 2.1, TensorDifference())
    assert row.first_different_step is None
    assert row.is_same_bits


@pytest.mark.parametrize(("steps", "seam"), [(60, 30), (3, 1), (10, 5), (400, 398), (7, 2)])
def test_the_seam_is_within_the_first_epoch_and_another_one_begins(steps: int, seam: int) -> None:
    """What is skipped wrongly later must show before the end, and the seam must not be an epoch's border."""
    batches = require_course(Course(steps=steps, seam=seam)).epoch_batches
    assert seam < batches < steps


def test_a_seam_without_steps_after_it_is_refused() -> None:
    """Nothing could be seen then; the sentence says which seam would do."""
    with pytest.raises(UsageError, match=r"too few of 10 steps are left") as caught:
        require_course(Course(steps=10, seam=9))
    assert caught.value.hint == "give a --seam of at most 8, or more --steps"


def test_rows_are_chosen_by_name_in_the_tables_order() -> None:
    """All without a name; an unknown one is answered with the one that was meant."""
    assert chosen(()) == OMISSIONS
    assert [one.name for one in chosen(("step", "intact"))] == ["intact", "step"]
    with pytest.raises(UsageError, match="there is no row `optimiser`") as caught:
        chosen(("optimiser",))
    assert caught.value.hint == "Did you mean `optimizer`?"


def test_every_row_has_an_intact_one_to_be_held_against() -> None:
    """Each order has one, names are distinct, and only the row that forgets its step runs on."""
    assert len({one.name for one in OMISSIONS}) == len(OMISSIONS)
    for order in {one.order for one in OMISSIONS}:
        assert [one.is_intact for one in OMISSIONS if one.order == order].count(True) == 1
    longer = [one.name for one in OMISSIONS if second_steps(one, Course()) != 30]
    assert longer == ["step"]
    assert OMISSIONS[0].order == RANDOM


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0"), (999_999, "999,999"), (2_000_000, "2.0e6"), (3 * 10**12, "3.0e12")]
)
def test_large_counts_are_short(number: int, shown: str) -> None:
    """A distance in ulp can be a number of ten digits, which says no more than two of them."""
    assert shown_count(number) == shown

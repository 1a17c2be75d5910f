"""Put a row together from its steps; pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from msgspec.structs import replace

from chaos.ablation.omissions import Course, Omission
from chaos.diagnosis import diagnose, in_words
from chaos.model import StepRecord, TensorDifference
from chaos.reports.ablation import AblationRow, StepMeasure
from chaos.steps import unsteady_components


def row_of(
    omission: Omission, course: Course, steps: Sequence[StepMeasure], loss_before: float, difference: TensorDifference
) -> AblationRow:
    """Return the row of `omission`.

    `steps` are its steps from the state that was resumed from to the reference's last one, `loss_before` the loss of
    the step before the seam, `difference` that of the weights after the last of them.
    """
    begin = steps[1]
    loss = begin.loss or 0.0
    return AblationRow(
        name=omission.name,
        left_out=omission.words,
        order=omission.order,
        is_intact=omission.is_intact,
        difference=difference,
        distance=steps[-1].weight_distance,
        loss_before=loss_before,
        loss_after=loss,
        loss_jump=begin.loss_gap,
        loss_change=loss - loss_before,
        mean_gap=mean_gap(steps),
        largest_gap=largest_gap(steps),
        update_ratio=update_ratio(steps),
        first_different_step=first_different_step(steps),
        updates=course.seam + second_steps(omission, course),
        steps=tuple(steps),
    )


def diagnosed(
    row: AblationRow, reference: Sequence[StepRecord], lives: Sequence[Sequence[StepRecord]], seam: int
) -> AblationRow:
    """Return `row` with what the probe's records of its two lives say beside the reference's.

    What the first life does not repeat before the seam (a generator that nobody seeds) says nothing after it.
    """
    unsteady = frozenset(unsteady_components(reference, lives[0]))
    found = diagnose(reference, lives, expected=(None, seam), unsteady=unsteady)
    if found is None:
        return row
    position, diagnosis = found
    words = in_words(diagnosis)
    return replace(row, diagnosed_life=position + 1, diagnosis=diagnosis, diagnosis_in_words=words)


def second_steps(omission: Omission, course: Course) -> int:
    """Return how many steps the life after the seam does."""
    return course.steps if omission.begins_anew else course.steps - course.seam


def first_different_step(steps: Sequence[StepMeasure]) -> int | None:
    """Return the first update that left other weights than the reference's; the state resumed from is no update."""
    return next((one.step for one in steps[1:] if one.elements_differing), None)


def mean_gap(steps: Sequence[StepMeasure]) -> float:
    """Return the mean over all updates of how far the loss is from the reference's, in nats."""
    return fmean(abs(one.loss_gap) for one in steps[1:])


def largest_gap(steps: Sequence[StepMeasure]) -> float:
    """Return the largest distance of a loss from the reference's, in nats."""
    return max(abs(one.loss_gap) for one in steps[1:])


def update_ratio(steps: Sequence[StepMeasure]) -> float:
    """Return how many times as long as the reference's the first update is (0: the reference's changed nothing)."""
    expected = steps[1].reference_update_length
    return steps[1].update_length / expected if expected else 0.0

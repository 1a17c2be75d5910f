"""Measure a run step by step beside its reference."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.ablation.weights import StepWeights, Weights, deviation, distance
from chaos.model import Record
from chaos.reports.ablation import StepMeasure


class _Seen(Record, kw_only=True):
    """The weights after one step, measured."""

    distance: float
    elements_differing: int
    update_length: float


class Meter:
    """Takes a run's weights step by step, from the state before its first step on, and holds them against others."""

    def __init__(self, reference: StepWeights, step: int, weights: Weights) -> None:
        """Begin after `step` of the reference, with the `weights` that the run has there."""
        self._reference, self._weights, self.step = reference, weights, step
        self._seen = [self._measured(weights)]

    def take(self, weights: Weights) -> None:
        """Take the weights after the next step."""
        self.step += 1
        self._seen.append(self._measured(weights))
        self._weights = weights

    def _measured(self, weights: Weights) -> _Seen:
        """Hold weights against the reference's of this step, and against those before."""
        found = deviation(weights, self._reference.after(self.step))
        length = distance(weights, self._weights)
        return _Seen(distance=found.distance, elements_differing=found.elements_differing, update_length=length)

    def steps(
        self, losses: Sequence[float], reference_losses: Sequence[float], reference_lengths: Sequence[float]
    ) -> tuple[StepMeasure, ...]:
        """Return all that was measured, beginning with the state that the run began with.

        `losses` are those of the run's own steps, `reference_losses` the reference's from step 1 on,
        `reference_lengths` those of its updates from the second on.
        """
        first = self.step - len(self._seen) + 1
        measures = []
        for number, seen in enumerate(self._seen):
            step = first + number
            measures.append(
                StepMeasure(
                    step=step,
                    loss=losses[number - 1] if number else None,
                    reference_loss=reference_losses[step - 1] if number else None,
                    weight_distance=seen.distance,
                    elements_differing=seen.elements_differing,
                    update_length=seen.update_length,
                    reference_update_length=reference_lengths[step - 2] if number else 0.0,
                )
            )
        return tuple(measures)

"""The lives of the experiment: a run at once, the same run killed at its seam, and each way of resuming it.

All rows of an order resume from the very same files, those that the killed life left: what a row leaves out is the only
difference between it and the intact one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from chaos.ablation.lanes import Lane
from chaos.ablation.lives import RESUME, Task, first_options, run_life, second_options
from chaos.ablation.measuring import Meter
from chaos.ablation.omissions import Course, Omission
from chaos.ablation.rows import diagnosed, row_of, second_steps
from chaos.ablation.weights import PREFIX, StepWeights, Weights, deviation, distance, read_weights
from chaos.checkpoints.process import Examiner
from chaos.errors import InconclusiveError
from chaos.model import Record, StepRecord, TensorDifference
from chaos.reports.ablation import AblationReference, AblationRow

LAST: Final = "last.pt"
IMPORTED: Final = "imported.json"


class ReferenceRun(Record, kw_only=True):
    """The uninterrupted run of one order: its folder, what was measured of it, the probe's records with details."""

    folder: Path
    told: AblationReference
    records: tuple[StepRecord, ...]

    @property
    def weights(self) -> StepWeights:
        """Return its weights after each step."""
        return StepWeights(self.folder / "weights")


class FirstLife(Record, kw_only=True):
    """A life that was killed when the seam's step was saved: its folder, with the files that it left, the records."""

    folder: Path
    records: tuple[StepRecord, ...]


class Experiment:
    """Runs the lives of one course below a folder; each method is one task for a lane."""

    def __init__(self, course: Course, folder: Path) -> None:
        """Run below `folder`, which is there."""
        self._course = course
        self._folder = folder.absolute()

    def run_reference(self, order: str, lane: Lane) -> ReferenceRun:
        """Run all steps at once, and keep the weights after each."""
        folder = self._folder / f"reference-{order}"
        keeper = StepWeights(folder / "weights")
        lengths: list[float] = []
        newest: list[Weights] = []

        def keep() -> None:
            """Keep the weights of the step that was saved just now."""
            weights = read_weights(folder / "out" / RESUME)
            lengths.extend(distance(weights, before) for before in newest)
            newest[:] = [weights]
            keeper.keep(len(lengths) + 1, weights)

        options = first_options(self._course, Omission(name="reference", words="", order=order))
        task = Task(
            number=1,
            options=options,
            folder=folder,
            steps=self._course.steps,
            imported=folder / IMPORTED,
            is_fresh=True,
        )
        life = run_life(task, lane, keep)
        told = AblationReference(order=order, losses=life.losses, update_lengths=tuple(lengths))
        return ReferenceRun(folder=folder, told=told, records=life.records)

    def run_first_life(self, omission: Omission, reference: ReferenceRun, lane: Lane) -> FirstLife:
        """Run until the seam's step is saved, and kill.

        Raises InconclusiveError where the weights saved until then are not the reference's: then the trainer does not
        repeat itself here, and what a resume does to the bits cannot be told.
        """
        folder, seam = self._folder / f"first-{omission.order}-{omission.save}", self._course.seam
        steps = iter(range(1, seam + 1))

        def check() -> None:
            """Hold the weights that were saved just now against the reference's."""
            step = next(steps)
            if omission.saves_exactly:
                _require_same(read_weights(folder / "out" / RESUME), reference.weights.after(step), step)

        options = first_options(self._course, omission)
        imported = reference.folder / IMPORTED
        task = Task(number=1, options=options, folder=folder, steps=seam, imported=imported, killed_after=seam)
        return FirstLife(folder=folder, records=run_life(task, lane, check).records)

    def run_row(self, omission: Omission, first: FirstLife, reference: ReferenceRun, lane: Lane) -> AblationRow:
        """Resume from the killed life's files as `omission` says, to the end, and measure each step on the way."""
        course, folder = self._course, self._folder / f"row-{omission.name}"
        shutil.copytree(first.folder / "out", folder / "out")
        resume = folder / "out" / RESUME
        meter = Meter(reference.weights, course.seam, read_weights(resume))

        def measure() -> None:
            """Measure the weights that were saved just now, up to the reference's last step."""
            if meter.step < course.steps:
                meter.take(read_weights(resume))
                if meter.step == course.steps:
                    os.link(resume, folder / LAST)  # a run whose steps began anew goes on from here

        options, steps = second_options(course, omission), second_steps(omission, course)
        task = Task(number=2, options=options, folder=folder, steps=steps, imported=reference.folder / IMPORTED)
        life = run_life(task, lane, measure)
        measured = meter.steps(life.losses, reference.told.losses, reference.told.update_lengths)
        difference = compare_weights(reference.folder / "out" / RESUME, folder / LAST, lane.examiner)
        shutil.rmtree(folder / "out")
        (folder / LAST).unlink()
        row = row_of(omission, course, measured, reference.told.losses[course.seam - 1], difference)
        return diagnosed(row, reference.records, (first.records, life.records), course.seam)


def _require_same(weights: Weights, expected: Weights, step: int) -> None:
    """Raise InconclusiveError where two uninterrupted runs have other weights at the same step."""
    if deviation(weights, expected).elements_differing:
        message = f"two runs of the trainer differ at step {step} without any kill"
        raise InconclusiveError(message, hint="see what `chaos run` says of the trainer's references")


def compare_weights(left: Path, right: Path, examiner: Examiner) -> TensorDifference:
    """Return how the weights in two resume files differ, by bits, leaving out all else that is in them."""
    leaves = (leaf.name for path in (left, right) for leaf in examiner.examine(path).leaves)
    return examiner.compare(left, right, frozenset(name for name in leaves if not name.startswith(PREFIX)))

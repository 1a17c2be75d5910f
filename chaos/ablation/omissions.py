"""What is left out of a resume, row by row, and the trainer's command line for each; pure."""

from __future__ import annotations

from typing import Final

from chaos.complaints import did_you_mean
from chaos.errors import UsageError
from chaos.model import Record

RANDOM: Final = "random"
EPOCH: Final = "epoch"
DURABLE: Final = "durable"
LEAST_STEPS_AFTER: Final = 2


class Omission(Record, kw_only=True):
    """One row: what the life that resumes does without (`forget`), or how the life before it saved (`save`).

    `order` is the trainer's order of batches. `is_intact`: nothing is left out. `begins_anew`: it counts its steps from
    0, and so goes on for a whole run more.
    """

    name: str
    words: str
    order: str = RANDOM
    forget: tuple[str, ...] = ()
    save: str = DURABLE

    @property
    def saves_exactly(self) -> bool:
        """Tell whether the resume file holds the weights as they are."""
        return self.save == DURABLE

    @property
    def is_intact(self) -> bool:
        """Tell whether nothing is left out."""
        return not self.forget and self.saves_exactly

    @property
    def begins_anew(self) -> bool:
        """Tell whether the resumed life counts its steps from 0."""
        return "step" in self.forget


class Course(Record, kw_only=True):
    """The course of all rows: so many steps, interrupted after `seam` of them; `seed` is the trainer's."""

    steps: int = 60
    seam: int = 30
    seed: int = 0

    @property
    def epoch_batches(self) -> int:
        """Return the length of an epoch: the seam is in the middle of the first, and the second begins before the end.

        So the batches seen before the seam, and those left of the epoch, are other ones, and what is skipped wrongly in
        a later epoch shows too.
        """
        return self.seam + max(1, (self.steps - self.seam) // 3)

    def options(self, order: str) -> tuple[str, ...]:
        """Return the trainer's options that all lives of an order share."""
        common = ("--save-every", "1", "--steps", str(self.steps), "--seed", str(self.seed), "--order", order)
        return (*common, "--epoch-batches", str(self.epoch_batches)) if order == EPOCH else common


OMISSIONS: Final = (
    Omission(name="intact", words="nothing"),
    Omission(name="weights_alone", words="all but the weights", forget=("optimizer", "batch-order", "rng")),
    Omission(name="optimizer", words="the optimizer state", forget=("optimizer",)),
    Omission(name="batch_order", words="the batch order's state", forget=("batch-order",)),
    Omission(name="rng", words="the generators", forget=("rng",)),
    Omission(name="step", words="the step number", forget=("step",)),
    Omission(name="half", words="half of each weight's bits", save="half"),
    Omission(name="epoch_intact", words="nothing", order=EPOCH),
    Omission(name="epoch_batch_order", words="skipping the batches seen", order=EPOCH, forget=("batch-order",)),
    Omission(name="epoch_skip", words="no skipping in later epochs", order=EPOCH, forget=("epoch-skip",)),
)


def require_course(course: Course) -> Course:
    """Return `course`; UsageError where the seam leaves too few steps after it to see anything."""
    if course.steps - course.seam < LEAST_STEPS_AFTER:
        message = f"with --seam {course.seam} too few of {course.steps} steps are left after the interruption"
        raise UsageError(message, hint=f"give a --seam of at most {course.steps - LEAST_STEPS_AFTER}, or more --steps")
    return course


def chosen(names: tuple[str, ...]) -> tuple[Omission, ...]:
    """Return the rows called `names`, in the table's order; all where none is named. UsageError for an unknown name."""
    known = {omission.name: omission for omission in OMISSIONS}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"Rows: {', '.join(known)}."
            raise UsageError(f"there is no row `{name}`", hint=hint)
    return tuple(omission for omission in OMISSIONS if not names or omission.name in names)

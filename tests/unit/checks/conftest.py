"""A training of 60 steps that was killed and resumed, with what the probe saw of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.model import CheckName, CheckResult, CheckStatus, Outcome, Reference, StepRecord, Violation
from chaos.steps import shortened

SAVED = 30
SAMPLES = 8

_DRAWS = count()
Change = Callable[[StepRecord, int], StepRecord]


class Story:
    """A training of 60 steps, killed after 40 and resumed from step 30, the probe's records of which a test makes."""

    def __init__(self, records: Any, change: Change | None = None, **reference: Any) -> None:
        """Begin with a reference whose steps are changed, and a lineage that is the same."""
        self.records = records
        steps = records.steps()
        self.expected = tuple(change(step, n) for n, step in enumerate(steps)) if change else steps
        self.reference: Reference = records.reference(steps=self.expected, **reference)
        self.lives: list[tuple[StepRecord, ...]] = [self.expected[:40], self.expected[SAVED:]]

    @staticmethod
    def diverged(step: StepRecord, position: int) -> StepRecord:
        """Let the weights go their own way after the first step."""
        return step if position == 0 else replace(step, components={"weights": f"own{position}"})

    @staticmethod
    def given_batches(batches: Sequence[str]) -> Change:
        """Return what gives the step at each position (from 0) its batch of `batches`."""
        return lambda step, position: replace(step, batches=(batches[position],))

    @staticmethod
    def given_samples(samples: Sequence[int]) -> Change:
        """Return what gives each step its part of `samples`, as batches that nobody has seen before."""
        draw = next(_DRAWS)

        def change(step: StepRecord, position: int) -> StepRecord:
            own = tuple(samples[position * SAMPLES : (position + 1) * SAMPLES])
            return replace(step, samples=(own,), batches=(f"augmented {draw} {position}",))

        return change

    def resumed(self, change: Change) -> Story:
        """Change the second life's steps; `change` is given the position in the life."""
        self.lives[-1] = tuple(change(step, position) for position, step in enumerate(self.expected[SAVED:]))
        return self

    def fed(self, batches: Sequence[str]) -> Story:
        """Feed the second life with other batches, and let its weights go their own way from its second step on."""
        return self.resumed(lambda step, n: replace(self.diverged(step, n), batches=(batches[n],)))

    def sampled(self, samples: Sequence[int]) -> Story:
        """Do the same with the samples that a loader showed."""
        feed = self.given_samples(samples)
        return self.resumed(lambda step, position: feed(self.diverged(step, position), position))

    @property
    def outcome(self) -> Outcome:
        """Return the lineage: a life that was killed after save 3, and one that resumed there and finished."""
        outcome: Outcome = self.records.lineage(4, 3)
        for position, steps in enumerate(self.lives):
            numbered = [replace(step, ordinal=number) for number, step in enumerate(steps, start=1)]
            others, runs = shortened(numbered, self.expected)
            outcome = self.records.altered(
                outcome, position, step_records=others, step_runs=runs, steps=len(steps), first_step=None
            )
        return outcome

    def result(self, name: CheckName) -> CheckResult:
        """Run one check on the lineage."""
        return ALL_CHECKS[name](self.reference, (self.outcome,), self.records.target)

    def found(self) -> dict[CheckName, Violation]:
        """Return the violation that each of the two checks found."""
        results = [self.result(name) for name in (CheckName.DATA_REPEATED, CheckName.DATA_SKIPPED)]
        assert all(len(result.violations) <= 1 for result in results)
        return {result.check: result.violations[0] for result in results if result.violations}

    def statuses(self) -> set[CheckStatus]:
        """Return what both checks come to."""
        return {self.result(name).status for name in (CheckName.DATA_REPEATED, CheckName.DATA_SKIPPED)}


@pytest.fixture(scope="session")
def story() -> type[Story]:
    """Give the maker of such trainings."""
    return Story

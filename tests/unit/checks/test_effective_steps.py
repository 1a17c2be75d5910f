"""Which steps of a lineage count, and which batches of them, however a life was resumed and a step was fed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.model import CheckName, CheckStatus, FaultKind, StepRecord, StepRun, TrialKind

TOTAL = 60
SAVED = 30


def names(first: int, last: int) -> list[str]:
    """Return the reference's batches of some steps."""
    return [f"batch{number}" for number in range(first, last + 1)]


def test_steps_that_were_redone_do_not_count(records: Any, story: Any) -> None:
    """Three lives that each redo the steps after the newest save saw no sample twice."""
    told = story(records)
    outcome = records.lineage(4, 1, 2, 4)
    lives = [
        replace(life, step_runs=(), step_records=_with_own_data(told, life.step_runs[0])) for life in outcome.lives
    ]
    outcome = replace(outcome, lives=tuple(lives))
    result = ALL_CHECKS[CheckName.DATA_REPEATED](told.reference, (outcome,), records.target)
    assert result.status is CheckStatus.PASSED


def _with_own_data(told: Any, run: StepRun) -> tuple[StepRecord, ...]:
    """Return a run's records as if they were not the reference's, so that nothing is taken for granted."""
    steps = told.expected[run.reference : run.reference + run.count]
    return tuple(
        replace(step, ordinal=number, components={**step.components, "gradients": "others"})
        for number, step in enumerate(steps, start=1)
    )


def test_an_older_checkpoint_with_its_own_data_passes(records: Any, story: Any) -> None:
    """Lost work is another finding: the steps from the older save on are done again with the same data."""
    told = story(records)
    told.lives[-1] = told.expected[10:]
    assert told.statuses() == {CheckStatus.PASSED}


def test_older_weights_with_newer_data_skip(records: Any, story: Any) -> None:
    """Weights of step 20 that go on with the data of step 31 never see what lies between."""
    told = story(records)
    first = replace(told.expected[30], components=told.expected[20].components)
    rest = [replace(step, components={"weights": f"own{n}"}) for n, step in enumerate(told.expected[31:])]
    told.lives[-1] = (first, *rest)
    (violation,) = told.found().values()
    assert (violation.check, violation.step) == (CheckName.DATA_SKIPPED, 21)
    assert "10 batches" in violation.detail


def test_a_lineage_that_has_diverged_is_followed(records: Any, story: Any) -> None:
    """A third life is placed by the weights of the second one, which are none of the reference's."""
    told = story(records)
    second = [
        replace(step, components={"weights": f"own{n}"}) if n else step for n, step in enumerate(told.expected[30:50])
    ]
    third = [
        replace(step, components={"weights": f"own{n + 10}"}, batches=(f"batch{n + 1}",))
        for n, step in enumerate(told.expected[40:])
    ]
    told.lives = [told.expected[:40], tuple(second), tuple(third)]
    outcome = records.lineage(4, 3, 4)
    for position, steps in enumerate(told.lives):
        numbered = tuple(replace(step, ordinal=number) for number, step in enumerate(steps, start=1))
        outcome = records.altered(outcome, position, step_runs=(), step_records=numbered)
    result = ALL_CHECKS[CheckName.DATA_REPEATED](told.reference, (outcome,), records.target)
    (violation,) = result.violations
    assert (violation.life, violation.step) == (3, 41)
    assert "40 batches" not in violation.detail  # only twenty steps are left
    assert "20 batches are seen again in life 3, those of steps 1 to 20" in violation.detail


def rounded(step: StepRecord, position: int) -> StepRecord:
    """Return a step whose weights are none of the reference's."""
    return replace(step, components={"weights": f"rounded{position}"})


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, CheckStatus.FAILED),  # 30 steps to the end confirm the save
        ({"first_step": 31}, CheckStatus.FAILED),
        ({"steps": 29}, CheckStatus.NOT_RUN),
    ],
)
def test_weights_that_nobody_knows(changes: dict[str, Any], status: CheckStatus, records: Any, story: Any) -> None:
    """Then the newest save places the life, but only where its steps or its first line agree."""
    told = story(records).resumed(lambda step, n: replace(rounded(step, n), batches=(f"batch{n + 1}",)))
    outcome = told.outcome
    number = changes.pop("steps", 30)
    steps = outcome.lives[-1].step_records[:number]
    outcome = records.altered(outcome, -1, step_records=steps, **changes)
    result = ALL_CHECKS[CheckName.DATA_REPEATED](told.reference, (outcome,), records.target)
    assert result.status is status
    told = story(records).resumed(rounded)
    assert told.statuses() == {CheckStatus.PASSED}


def test_the_optimizer_places_a_life_whose_weights_nobody_knows(records: Any, story: Any) -> None:
    """Its moments are those of step 20, though the newest save is that of step 30."""

    def with_moments(step: StepRecord, position: int) -> StepRecord:
        return replace(step, components={**step.components, "state.exp_avg": f"moments{position}"})

    told = story(records, with_moments)
    late = [
        replace(step, components={"weights": f"r{n}", "state.exp_avg": f"moments{n + 20}" if n == 0 else f"m{n}"})
        for n, step in enumerate(told.expected[20:])
    ]
    told.lives[-1] = tuple(late)
    assert told.statuses() == {CheckStatus.PASSED}


def test_a_step_without_a_batch_is_no_training(records: Any, story: Any) -> None:
    """Some loaders step an optimizer once to make its state."""
    told = story(records)
    odd = replace(told.expected[0], components={"weights": "zeros"}, batches=())
    told.lives[-1] = (odd, *told.expected[SAVED:])
    assert told.statuses() == {CheckStatus.PASSED}


def test_batches_that_are_given_inside_the_step_are_in_the_next_record(records: Any, story: Any) -> None:
    """Then a life's first record has none, and is the only one with the reference's weights if the data are others."""
    told = story(records, lambda step, n: replace(step, batches=(f"batch{n}",) if n else ()))
    told.lives = [told.expected[:40], (replace(told.expected[SAVED], batches=()), *told.expected[SAVED + 1 :])]
    assert told.statuses() == {CheckStatus.PASSED}
    told.resumed(lambda step, n: replace(story.diverged(step, n), batches=(f"batch{n}",) if n else ()))
    (violation,) = told.found().values()
    assert violation.check is CheckName.DATA_REPEATED
    assert "30 batches" not in violation.detail  # the last step's are in no record
    assert "29 batches are seen again in life 2" in violation.detail


def test_a_step_with_the_weights_of_the_start_tells_nothing(records: Any, story: Any) -> None:
    """A loader that steps before it loads has the first weights; where those it loads are unknown, nothing is said."""
    told = story(records)
    odd = replace(told.expected[0], batches=())
    late = [replace(rounded(step, n), batches=(f"batch{n + 1}",)) for n, step in enumerate(told.expected[SAVED:-1])]
    told.lives[-1] = (odd, *late)
    assert told.statuses() == {CheckStatus.NOT_RUN}


def test_a_lost_record_is_not_guessed_around(records: Any, story: Any) -> None:
    """Where a step in the middle has no record, positions are not known."""
    told = story(records).fed(names(1, 30))
    outcome = told.outcome
    steps = outcome.lives[-1].step_records
    outcome = records.altered(outcome, -1, step_records=(*steps[:5], *steps[6:]))
    result = ALL_CHECKS[CheckName.DATA_REPEATED](told.reference, (outcome,), records.target)
    assert result.status is CheckStatus.NOT_RUN


# --- steps that the probe's budget left out ---------------------------------------------------------------


def thinned(step: StepRecord, position: int, first: int = 0) -> StepRecord:
    """Leave out all but the number of most steps, as a budget does with those that no save is next to."""
    is_kept = position == first or position % 10 == 0 or position % 7 == 1
    return step if is_kept else StepRecord(ordinal=step.ordinal, optimizer=step.optimizer)


@pytest.mark.parametrize(("first", "found"), [(31, None), (1, CheckName.DATA_REPEATED), (38, CheckName.DATA_SKIPPED)])
def test_steps_that_nobody_saw_keep_their_places(first: int, found: CheckName | None, records: Any, story: Any) -> None:
    """Most steps have no batches in the record: those that have are compared, and nothing is guessed."""
    told = story(records, thinned)

    def fed(step: StepRecord, position: int) -> StepRecord:
        given = replace(records.step(step.ordinal), batches=(f"batch{first + position}",))
        return thinned(story.diverged(given, position), position)

    told.resumed(fed)
    if found is None:
        assert told.statuses() == {CheckStatus.PASSED}
    else:
        (violation,) = told.found().values()
        assert (violation.check, violation.step) == (found, 31)
        assert f"{30 if first == 1 else 7} batches" in violation.detail


def test_nothing_is_proven_where_what_nobody_saw_may_be_it(records: Any, story: Any) -> None:
    """In epochs of one order the reference may have seen the batch as often, in the steps that have no record."""
    cycle = [f"b{number % 17}" for number in range(TOTAL)]
    told = story(records, lambda step, n: thinned(replace(step, batches=(cycle[n],)), n))
    told.resumed(lambda step, n: replace(story.diverged(records.step(step.ordinal), n), batches=(cycle[n],)))
    assert told.statuses() == {CheckStatus.NOT_RUN}


def test_unseen_steps_of_unknown_size_are_not_placed(records: Any, story: Any) -> None:
    """Where steps are given one batch or two, nobody knows how many an unseen step was given."""
    told = story(records, lambda step, n: thinned(replace(step, batches=(f"a{n}", f"b{n}")[: 1 + n % 2]), n))
    told.resumed(lambda step, n: story.diverged(step, n + 1))
    assert told.statuses() == {CheckStatus.NOT_RUN}


# --- accumulation, closures, several streams ----------------------------------------------------------


def micro(position: int) -> tuple[str, ...]:
    """Return the four batches of one step's accumulation."""
    return tuple(f"micro{4 * position + part}" for part in range(4))


def accumulating(step: StepRecord, position: int) -> StepRecord:
    """Give a step four batches."""
    return replace(step, batches=micro(position))


def test_a_half_filled_accumulation_goes_on(records: Any, story: Any) -> None:
    """The batches that are in the loaded gradients are not missing."""
    told = story(records, accumulating)
    told.resumed(lambda step, n: step if n else replace(step, batches=step.batches[2:], components=step.components))
    assert told.statuses() == {CheckStatus.PASSED}


def test_a_half_filled_accumulation_is_lost(records: Any, story: Any) -> None:
    """Two batches that were used up by gradients which nobody saved are left out."""
    told = story(records, accumulating)
    flat = [f"micro{number}" for number in range(4 * SAVED + 2, 4 * TOTAL + 2)]
    told.resumed(lambda step, n: replace(story.diverged(step, n), batches=tuple(flat[4 * n : 4 * n + 4])))
    (violation,) = told.found().values()
    assert (violation.check, violation.step) == (CheckName.DATA_SKIPPED, 31)
    assert "2 batches are left out in life 2, that of step 31" in violation.detail


def test_more_calls_of_a_closure_are_no_repetition(records: Any, story: Any) -> None:
    """How often a line search looks at a batch depends on the weights."""
    told = story(records, lambda step, n: replace(step, batches=(f"batch{n + 1}",) * (1 + n % 3)))
    told.resumed(lambda step, n: replace(story.diverged(step, n), batches=(f"batch{n + 31}",) * (1 + n % 4)))
    assert told.statuses() == {CheckStatus.PASSED}


def test_calls_that_show_the_models_own_output_are_passed_over(records: Any, story: Any) -> None:
    """A loss that is a module is given what the model made, which differs as soon as the weights do."""
    told = story(records, lambda step, n: replace(step, batches=(f"batch{n + 1}", f"logits{n}")))
    told.resumed(lambda step, n: replace(story.diverged(step, n), batches=(f"batch{n + 31}", f"others{n}")))
    assert told.statuses() == {CheckStatus.PASSED}
    told.resumed(lambda step, n: replace(story.diverged(step, n), batches=(f"batch{n + 1}", f"others{n}")))
    assert told.found().keys() == {CheckName.DATA_REPEATED}


def interleaved(steps: Sequence[StepRecord], **second: Any) -> tuple[StepRecord, ...]:
    """Return each step twice, the second time as another optimizer's or rank's."""
    return tuple(both for step in steps for both in (step, replace(step, **second)))


@pytest.mark.parametrize("second", [{"optimizer": "SGD"}, {"rank": 1}])
def test_several_streams(second: dict[str, Any], records: Any) -> None:
    """Two optimizers that were given the same batches are one finding; of two ranks the one that is wrong is named."""
    reference = records.reference(steps=interleaved(records.steps(), **second))
    steps = interleaved(records.fed(3, first=1)["step_records"], **second)
    outcome = records.altered(records.lineage(4, 3), -1, step_runs=(), step_records=steps)
    first = records.altered(outcome, 0, step_runs=(StepRun(first=0, reference=0, count=80),))
    (violation,) = ALL_CHECKS[CheckName.DATA_REPEATED](reference, (first,), records.target).violations
    assert violation.detail.startswith("Rank 0: " if "rank" in second else "Step 31 was given")
    assert "30 batches" in violation.detail


# --- not run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [CheckName.DATA_REPEATED, CheckName.DATA_SKIPPED])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"steps": ()}, "saw no batches"), ({"unsteady": ("data",)}, "different batches")],
)
def test_what_cannot_be_judged(name: CheckName, changes: dict[str, Any], reason: str, records: Any) -> None:
    """Without batches, or with other ones in each run, nothing is said and the reason is."""
    outcome = records.altered(records.lineage(4, 3), -1, step_runs=())
    plain = records.altered(outcome, 0, step_runs=())
    result = ALL_CHECKS[name](records.reference(**changes), (plain,), records.target)
    assert result.status is CheckStatus.NOT_RUN
    assert reason in result.reason


def test_a_lineage_that_nobody_interrupted_is_no_case(records: Any) -> None:
    """The control shows nothing about resuming, though a fault in it would be told."""
    control = records.control()
    result = ALL_CHECKS[CheckName.DATA_SKIPPED](records.reference(), (control,), records.target)
    assert result.status is CheckStatus.NOT_RUN
    assert control.trial.kind is TrialKind.CONTROL


@pytest.mark.parametrize("fault", [FaultKind.POWER_LOSS, FaultKind.DISK_FULL])
def test_other_faults_are_judged_alike(fault: FaultKind, records: Any) -> None:
    """Whatever ended the life before, the data of the next one are compared."""
    outcome = records.errors(7, fault)
    bad = records.altered(outcome, -1, **records.fed(2, first=1))
    (violation,) = ALL_CHECKS[CheckName.DATA_REPEATED](records.reference(), (bad,), records.target).violations
    assert violation.step == 21

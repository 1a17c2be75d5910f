"""Which life is told of, what is not compared, what is in doubt; accumulation and averages."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chaos.diagnosis import diagnose
from chaos.model import Component, Diagnosis, Manner, StepRecord

from . import losses
from .simulated import EPOCH, Lose, Run, Toy, Ways, in_json, resumed, run

WAYS = Ways()
BATCHED = Ways(accumulation=4)


def reference_of(ways: Ways = WAYS, *, digested_every: int = 1) -> Run:
    """Return the uninterrupted run."""
    return run(Toy(ways=ways), 0, ways.total, digested_every=digested_every)


def said(found: tuple[int, Diagnosis] | None) -> list[tuple[Component, Manner]]:
    """Return what was named."""
    assert found is not None
    return [(one.component, one.manner) for one in found[1].lost]


def test_first_life_that_differs_is_told() -> None:
    """Lives that are the reference's, ended early or had no step are passed over, and later ones are not looked at."""
    reference = reference_of()
    redone = resumed(reference, WAYS, 10, last=15).records
    broken = resumed(reference, WAYS, 20, losses.no_optimizer).records
    worse = resumed(reference, WAYS, 20, losses.noisy_weights).records
    lives = [reference.records[:12], (), redone, reference.records[:5], broken, worse]
    found = diagnose(reference.records, lives)
    assert found is not None
    assert found[0] == 4
    assert said(found) == [(Component.OPTIMIZER, Manner.MISSING)]
    assert diagnose(reference.records, lives[:4]) is None


def test_records_survive_the_journal() -> None:
    """A diagnosis of records that were written and read again is the same."""
    reference = reference_of()
    lives = [reference.records[:12], resumed(reference, WAYS, 10, losses.no_optimizer).records]
    again = [in_json(records) for records in lives]
    assert diagnose(in_json(reference.records), again) == diagnose(reference.records, lives)


def test_loss_that_shows_later_is_found_later() -> None:
    """Data that are right until the epoch ends: the first different step is the next epoch's first."""
    reference = reference_of()

    def forget_epoch(toy: Toy, fresh: Toy, known: Run) -> None:
        del fresh, known
        toy.epoch -= 1

    found = diagnose(reference.records, [resumed(reference, WAYS, 20, forget_epoch).records])
    assert found is not None
    assert found[1].resumed_at == 20
    assert found[1].first_difference == 2 * EPOCH + 1
    assert said(found) == [(Component.DATA, Manner.REPEATED)]


@pytest.mark.parametrize("component", ["rng.numpy", "data", "weights", "gradients", "buffers", "state.exp_avg"])
def test_unsteady_component_is_not_compared(component: str) -> None:
    """What two runs without a fault differ in is nobody's loss, and its absence hides no other loss."""
    reference = reference_of()
    intact = resumed(reference, WAYS, 20).records
    noisy = tuple(
        replace(record, components=record.components | {component: f"{number}"}, batches=(f"{number}",))
        if component == "data"
        else replace(record, components=record.components | {component: f"{number}"}, details={}, sketch=())
        for number, record in enumerate(intact)
    )
    unsteady = frozenset({component})
    assert diagnose(reference.records, [noisy], unsteady=unsteady) is None
    ahead = tuple(replace(record, components=record.components | {"group.lr": "x"}) for record in noisy)
    found = diagnose(reference.records, [ahead], unsteady=unsteady)
    assert said(found) == [(Component.SCHEDULER, Manner.DIFFERENT)]
    assert found is not None
    assert component in found[1].doubts[-1]


@pytest.mark.parametrize("every", [2, 5, 10])
def test_steps_that_were_not_digested_hide_no_loss(every: int) -> None:
    """The step after the save is digested: the loss is named; intact lives stay intact, wherever a budget left gaps."""
    reference = reference_of(digested_every=every)
    intact = resumed(reference_of(), WAYS, 20)
    assert diagnose(reference.records, [intact.records]) is None
    broken = resumed(reference_of(), WAYS, 20, losses.no_second_moment)
    assert said(diagnose(reference.records, [broken.records])) == [(Component.OPTIMIZER, Manner.PARTLY_MISSING)]


def test_difference_in_steps_that_were_not_digested_is_in_doubt() -> None:
    """Where a hidden difference began between two digested steps, weights are named, and the doubt is told."""
    ways = Ways(has_adam=False)
    reference = reference_of(ways)
    intact = resumed(reference, ways, 20).records
    broken = resumed(reference, ways, 20, losses.other_scale).records
    found = diagnose(reference.records, [[intact[0], _undigested(broken[1]), _undigested(broken[2]), *broken[3:]]])
    assert said(found) == [(Component.WEIGHTS, Manner.DIFFERENT)]
    assert found is not None
    assert (found[1].resumed_at, found[1].first_difference) == (20, 24)
    assert any("begun there" in doubt for doubt in found[1].doubts)


def _undigested(record: StepRecord) -> StepRecord:
    """Leave out what a budget leaves out."""
    kept = {name: one for name, one in record.components.items() if name.startswith(("rng.", "group.", "data"))}
    return replace(record, components=kept, details={})


def test_data_are_told_of_a_step_that_was_not_digested() -> None:
    """Data and generators are in every record."""
    reference = reference_of()
    broken = list(resumed(reference, WAYS, 20, losses.moved_data(2)).records)
    broken[0] = _undigested(broken[0])
    found = diagnose(reference.records, [broken])
    assert said(found) == [(Component.DATA, Manner.SKIPPED)]
    assert found is not None
    assert any("in part only" in doubt for doubt in found[1].doubts)


def test_rounded_weights_are_told_without_details() -> None:
    """Some values at fixed places are enough."""
    reference = reference_of()
    broken = resumed(reference, WAYS, 20, losses.rounded_weights(losses.BRAIN)).records
    plain = [replace(record, details={}) for record in reference.records]
    found = diagnose(plain, [[replace(record, details={}) for record in broken]])
    assert said(found) == [(Component.WEIGHTS, Manner.LOWER_PRECISION)]


def test_silent_start_from_zero_is_no_lost_state() -> None:
    """A life that is the reference's from step 1 is passed over; a later difference says where it went on from."""
    reference = reference_of()
    again = run(Toy(ways=WAYS), 0, WAYS.total).records
    assert diagnose(reference.records, [again], expected=[30]) is None
    toy = Toy(ways=WAYS)
    toy.settings["weight_decay"] = 0.5
    found = diagnose(reference.records, [run(toy, 0, WAYS.total).records], expected=[30])
    assert found is not None
    assert found[1].resumed_at == 0
    assert said(found) == [(Component.SETTINGS, Manner.DIFFERENT)]
    assert any("of step 30" in doubt for doubt in found[1].doubts)


def test_life_beyond_the_reference_has_lost_nothing() -> None:
    """More steps than the reference are told, and no loss is."""
    reference = reference_of()
    longer = run(Toy(ways=WAYS), 0, WAYS.total + 3).records
    found = diagnose(reference.records, [longer])
    assert said(found) == []
    assert found is not None
    assert "3 steps" in found[1].doubts[0]


def test_records_like_nothing_are_in_doubt() -> None:
    """Where nothing is known, nothing is named; with a hint it is taken, and called a guess."""
    reference = reference_of()
    other = resumed(reference, WAYS, 20, losses.noisy_weights).records
    strange = [
        replace(record, components=dict.fromkeys(record.components, "?"), details={}, sketch=(), batches=("?",))
        for record in other
    ]
    found = diagnose(reference.records, [strange])
    assert said(found) == []
    assert found is not None
    assert found[1].resumed_at is None
    hinted = diagnose(reference.records, [strange], expected=[20])
    assert hinted is not None
    assert hinted[1].resumed_at == 20
    assert any("a guess" in doubt for doubt in hinted[1].doubts)
    assert diagnose((), [strange]) is None
    assert diagnose(reference.records, []) is None


@pytest.mark.parametrize(("lose", "used"), [(losses.no_accumulation, 2), (losses.accumulation_from_zero, 4)])
def test_half_filled_accumulation_is_told(lose: Lose, used: int) -> None:
    """The batches that were read before the save are in no gradient any more; generators follow."""
    reference = reference_of(BATCHED)
    toy = run(Toy(ways=BATCHED), 0, 20).saves[20]
    toy.forward_backward()
    toy.forward_backward()
    reference.saves[20] = toy
    found = diagnose(reference.records, [resumed(reference, BATCHED, 20, lose).records])
    assert found is not None
    assert said(found) == [(Component.ACCUMULATION, Manner.MISSING)]
    assert f"the step used {used} batches, the reference 4: the first 2 are missing" in found[1].lost[0].detail
    assert (found[1].resumed_at, found[1].first_difference) == (20, 21)


def test_other_number_of_batches_is_told() -> None:
    """A step that comes too early has fewer batches, from the first one on."""
    reference = reference_of(BATCHED)

    def early(toy: Toy, fresh: Toy, known: Run) -> None:
        del fresh, known
        toy.micro = 1

    found = diagnose(reference.records, [resumed(reference, BATCHED, 20, early).records])
    assert said(found) == [(Component.ACCUMULATION, Manner.DIFFERENT)]


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.99])
def test_moving_average_is_told(decay: float) -> None:
    """The decay is found again."""
    reference = reference_of()
    lose = losses.averaged_weights(reference.trail[:21], decay)
    found = diagnose(reference.records, [resumed(reference, WAYS, 20, lose).records])
    assert found is not None
    assert said(found) == [(Component.WEIGHTS, Manner.AVERAGED)]
    assert f"decay of {decay:g}" in found[1].lost[0].detail


@pytest.mark.parametrize(
    ("chosen", "words"), [(slice(16, 21), "the last 5 steps"), (slice(0, 21, 10), "3 steps, 10 apart")]
)
def test_mean_is_told(chosen: slice, words: str) -> None:
    """How many steps it is of is found again."""
    reference = reference_of()
    lose = losses.mean_weights(reference.trail[chosen])
    found = diagnose(reference.records, [resumed(reference, WAYS, 20, lose).records])
    assert found is not None
    assert said(found) == [(Component.WEIGHTS, Manner.AVERAGED)]
    assert words in found[1].lost[0].detail

"""The parts of a diagnosis by themselves: rounding, averages, epochs, and the sentences."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from msgspec.structs import replace

from chaos.diagnosis import diagnose, in_words
from chaos.diagnosis.averages import fitted_average, lies_between
from chaos.diagnosis.epochs import epochs_of
from chaos.diagnosis.sketches import nearest, rounded, rounding_between
from chaos.model import Component, Diagnosis, LostState, Manner

from . import losses
from .simulated import Toy, Ways, brain, resumed, run


def walk(steps: int, size: int = 8, seed: int = 0) -> list[tuple[float, ...]]:
    """Return a walk of weights."""
    rng = random.Random(seed)
    at = [rng.uniform(-1, 1) for _ in range(size)]
    found = [tuple(at)]
    for _ in range(steps):
        at = [value + rng.uniform(-0.01, 0.01) for value in at]
        found.append(tuple(at))
    return found


def test_rounding_is_that_of_the_types() -> None:
    """To the nearest, to even, beyond the largest number to infinity: as numpy rounds to float16, and by neighbours."""
    rng = random.Random(1)
    values = [float(np.float32(rng.uniform(-2, 2) * 10 ** rng.randint(-9, 4))) for _ in range(500)]
    with np.errstate(over="ignore"):
        assert [rounded(value, "float16") for value in values] == [float(np.float16(value)) for value in values]
    assert [rounded(value, "bfloat16") for value in values] == [brain(value) for value in values]
    assert rounded(1e6, "float16") == math.inf
    assert rounded(-1e6, "float16") == -math.inf


def test_rounding_needs_values_that_it_changes() -> None:
    """Equal values, and few, say nothing."""
    assert rounding_between((0.1,) * 3, (0.1,) * 3) is None
    assert rounding_between((0.5,) * 8, (0.5,) * 8) is None
    assert rounding_between(tuple(brain(0.1 * at) for at in range(9)), tuple(0.1 * at for at in range(9))) == "bfloat16"
    assert nearest((1.0, 2.0), [(), (5.0, 5.0), (1.0, 2.1)]) == 2


@pytest.mark.parametrize("steps", [12, 40, 300])
@pytest.mark.parametrize("decay", [0.6, 0.95, 0.999])
def test_moving_average_is_fitted(steps: int, decay: float) -> None:
    """The decay is found from the values alone; one that begins after the first update too."""
    series = walk(steps)
    for begin in (0, 1):
        average = np.array(series[begin])
        for step in series[begin + 1 :]:
            average = np.float64(decay) * average + (1 - decay) * np.array(step)
        words = fitted_average(average.astype(np.float32).tolist(), series)
        assert words is not None
        assert float(words.rsplit(" ", 1)[1]) == pytest.approx(decay, abs=0.02 * (1 - decay))


def test_warmed_up_average_is_fitted() -> None:
    """A decay that grows with the steps."""
    series = walk(50)
    average = np.array(series[0])
    for number, step in enumerate(series[1:], start=1):
        kept = min(0.99, (1 + number) / (10 + number))
        average = kept * average + (1 - kept) * np.array(step)
    words = fitted_average(average.tolist(), series)
    assert words is not None
    assert words.endswith("that warmed up")


@pytest.mark.parametrize("seed", range(20))
def test_other_weights_are_no_average(seed: int) -> None:
    """Noise, interpolation of each value by itself, and a step before are no average."""
    series = walk(60, seed=seed)
    rng = random.Random(seed)
    near = [value + rng.uniform(-0.01, 0.01) for value in series[-1]]
    between = [rng.uniform(min(at), max(at)) for at in zip(*series, strict=True)]
    assert fitted_average(near, series) is None
    assert fitted_average(between, series) is None
    assert lies_between(between, series)
    assert not lies_between([value + 5 for value in near], series)
    assert fitted_average(between[:3], [step[:3] for step in series]) is None


def test_epochs_are_told_by_samples() -> None:
    """An epoch ends where a sample comes again; samples drawn with replacement make none."""
    known = epochs_of([(0, 1), (2, 3), (3, 0), (1, 2), (0, 1)])
    assert known is not None
    assert (known.places, known.length) == ((0, 1, 0, 1, 0), 2)
    assert epochs_of([(0, 1), ()]) is None
    assert epochs_of([(0, 0)]) is None
    assert epochs_of([(0,), (1,), (0,), (0,), (1,)]) is None
    endless = epochs_of([(0,), (1,)])
    assert endless is not None
    assert endless.length is None


def test_epochs_are_worked_out_where_steps_were_left_out() -> None:
    """The numbers of the samples tell how long an epoch is, if no sample comes twice in one."""
    whole = [(0, 1), (2, 3), (4, 5), (5, 0), (1, 2), (3, 4), (2, 4)]
    known = epochs_of([*whole[:1], None, *whole[2:]])
    assert known is not None
    assert (known.places, known.length) == ((0, 1, 2, 0, 1, 2, 0), 3)
    assert epochs_of([(0, 1), None, (0, 5), (4, 2)]) is None
    assert epochs_of([(0, 1), None]) is None


def test_diagnosis_in_words() -> None:
    """Where it resumed, what was lost, the first different update, what is equal, what is in doubt."""
    lost = (
        LostState(
            component=Component.OPTIMIZER, manner=Manner.MISSING, step=31, detail="exp_avg is gone", optimizer="Adam"
        ),
        LostState(component=Component.DATA, manner=Manner.REPEATED, step=31, detail="seen again", rank=1),
    )
    found = Diagnosis(
        resumed_at=30, first_difference=31, lost=lost, equal=("weights", "buffers"), doubts=("Who knows.",)
    )
    assert in_words(found) == (
        "It resumed with the state of step 30.",
        "Lost: optimizer state of Adam (missing): exp_avg is gone.",
        "Lost: data on rank 1 (repeated): seen again.",
        "First different update: step 31.",
        "The same as the reference's there: weights, buffers.",
        "Who knows.",
    )
    assert in_words(Diagnosis(resumed_at=0, first_difference=None)) == ("It began with the state of the start.",)


def test_schedule_that_is_wrong_from_the_second_step_on() -> None:
    """A schedule that was not restored shows one step after the resume, and is not hidden by what shows at once."""
    reference = run(Toy(ways=Ways()), 0, Ways().total)
    first, *later = resumed(reference, Ways(), 20, losses.other_generator("torch")).records
    behind = [
        replace(
            record,
            components=record.components | {"group.lr": reference.records[19 + number].components["group.lr"]},
            values=record.values | {"group.lr": reference.records[19 + number].values["group.lr"]},
        )
        for number, record in enumerate(later, start=1)
    ]
    found = diagnose(reference.records, [(first, *behind)])
    assert found is not None
    named = [(one.component, one.manner, one.step) for one in found[1].lost]
    assert named == [(Component.SCHEDULER, Manner.BEHIND, 22), (Component.RNG_TORCH, Manner.DIFFERENT, 21)]
    assert str(Component.SCHEDULER) not in found[1].equal


def test_group_of_parameters_that_is_not_there_again() -> None:
    """An optimizer without a group that was added later: its weights are not lost, nor is the others' schedule."""
    reference = run(Toy(ways=Ways()), 0, Ways().total)
    first, *later = resumed(reference, Ways(), 20).records
    gone = max(first.details["weights"])
    fewer = {
        key: {name: facts for name, facts in tensors.items() if name != gone} for key, tensors in first.details.items()
    }
    changed = ("weights", "gradients", "state.", "group.")
    others = {name: "other" for name in first.components if name.startswith(changed)}
    short = replace(first, components=first.components | others, details=fewer)
    found = diagnose(reference.records, [(short, *later)])
    assert found is not None
    assert [(one.component, one.manner) for one in found[1].lost] == [(Component.OPTIMIZER, Manner.PARTLY_MISSING)]
    assert gone in found[1].lost[0].detail

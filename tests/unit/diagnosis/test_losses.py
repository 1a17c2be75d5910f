"""Each planted loss is named: its component, its manner, its step, and nothing beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from chaos.diagnosis import diagnose
from chaos.model import Component, Diagnosis, LostState, Manner

from . import losses
from .losses import BRAIN, HALF
from .simulated import Lose, Run, Toy, Ways, resumed, run

C, M = Component, Manner
PLAIN, LOADER, DRAWN = Ways(), Ways(order="loader"), Ways(order="drawn")
UNKNOWN = Ways(shows_samples=False)
SGD = Ways(has_adam=False, has_buffers=False, has_dropout=False, schedule="constant")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A planted loss, and what must be said of it."""

    name: str
    loses: tuple[Lose, ...]
    says: tuple[tuple[Component, Manner], ...]
    detail: str = ""
    ways: Ways = field(default=PLAIN)
    at: int = 20


def case(name: str, loses: Lose | tuple[Lose, ...], *says: object, detail: str = "", ways: Ways = PLAIN) -> Case:
    """Return a case; `says` are a component and a manner in turn."""
    several = loses if isinstance(loses, tuple) else (loses,)
    pairs = tuple(zip(says[::2], says[1::2], strict=True))
    return Case(name=name, loses=several, says=pairs, detail=detail, ways=ways)  # type: ignore[arg-type]


OPTIMIZER = [
    case("none", losses.no_optimizer, C.OPTIMIZER, M.MISSING, detail="exp_avg and exp_avg_sq are missing in 4 of 4"),
    case("zero", losses.zero_optimizer, C.OPTIMIZER, M.MISSING, detail="are zero in 4 of 4 parameters"),
    case("one key", losses.no_second_moment, C.OPTIMIZER, M.PARTLY_MISSING, detail="exp_avg_sq is zero in 4 of 4"),
    case(
        "one parameter",
        losses.no_state_of_head,
        C.OPTIMIZER,
        M.PARTLY_MISSING,
        detail="missing in 1 of 4 parameters (head)",
    ),
    case(
        "bf16", losses.rounded_optimizer(BRAIN), C.OPTIMIZER, M.LOWER_PRECISION, detail="rounded to bfloat16 in 4 of 4"
    ),
    case("fp16", losses.rounded_optimizer(HALF), C.OPTIMIZER, M.LOWER_PRECISION, detail="rounded to float16 in 4 of 4"),
    case(
        "bf16 in part",
        losses.rounded_optimizer(BRAIN, ("head",)),
        C.OPTIMIZER,
        M.LOWER_PRECISION,
        detail="1 of 4 parameters (head)",
    ),
    case(
        "of 10",
        losses.optimizer_of(10),
        C.OPTIMIZER,
        M.OTHER_STEP,
        detail="the reference's after step 10, 10 steps behind",
    ),
    case("swapped", losses.swapped_optimizer, C.OPTIMIZER, M.DIFFERENT, detail="belong to other parameters"),
    case(
        "counter 0",
        losses.counter_of(0),
        C.STEP_COUNTER,
        M.OTHER_STEP,
        detail="the step counter is 0 in all parameters; the reference has 20",
    ),
    case("counter 7", losses.counter_of(7), C.STEP_COUNTER, M.OTHER_STEP, detail="13 steps behind"),
    case(
        "counter, and bf16",
        (losses.counter_of(0), losses.rounded_optimizer(BRAIN)),
        C.OPTIMIZER,
        M.LOWER_PRECISION,
        C.STEP_COUNTER,
        M.OTHER_STEP,
    ),
]
SCHEDULE = [
    case("rebuilt", losses.schedule_at(0), C.SCHEDULER, M.REBUILT, detail="the reference's of step 1, 20 steps behind"),
    case("behind", losses.schedule_at(11), C.SCHEDULER, M.BEHIND, detail="of step 12, 9 steps behind"),
    case("ahead", losses.schedule_at(21), C.SCHEDULER, M.AHEAD, detail="1 step ahead"),
    case("nowhere", losses.schedule_at(17.3), C.SCHEDULER, M.DIFFERENT, detail="no step of it has this"),
    case("cycle", losses.schedule_at(5), C.SCHEDULER, M.BEHIND, detail="so is betas", ways=Ways(schedule="cycle")),
    case(
        "decay",
        losses.setting("weight_decay", 0.1),
        C.SETTINGS,
        M.DIFFERENT,
        detail="weight_decay is 0.1, the reference has 0.01",
    ),
    case("betas", losses.setting("betas", (0.5, 0.5)), C.SETTINGS, M.DIFFERENT, detail="betas is not"),
]
GENERATORS = [
    case("torch", losses.fresh_generator("torch"), C.RNG_TORCH, M.REBUILT, detail="seeded anew"),
    case("torch, other", losses.other_generator("torch"), C.RNG_TORCH, M.DIFFERENT),
    case("torch of 10", losses.generator_of("torch", 10), C.RNG_TORCH, M.OTHER_STEP, detail="10 steps behind"),
    case("numpy", losses.fresh_generator("numpy"), C.RNG_NUMPY, M.REBUILT),
    case("random", losses.other_generator("random"), C.RNG_RANDOM, M.DIFFERENT),
    case("loader's", losses.fresh_loader, C.RNG_LOADER, M.REBUILT, ways=LOADER),
    case("torch, which draws the data", losses.fresh_generator("torch"), C.RNG_TORCH, M.REBUILT, ways=DRAWN),
    case("torch, which draws other data", losses.other_generator("torch"), C.RNG_TORCH, M.DIFFERENT, ways=DRAWN),
]
DATA = [
    case("anew", losses.data_anew, C.DATA, M.REPEATED, detail="the reference's of step 1 (sample"),
    case("anew, samples unknown", losses.data_anew, C.DATA, M.REPEATED, detail="the data began anew", ways=UNKNOWN),
    case("epoch anew", losses.epoch_anew, C.DATA, M.REPEATED, detail="the epoch began anew"),
    case("epoch anew, loader", losses.epoch_anew, C.DATA, M.REPEATED, ways=LOADER),
    case("one back", losses.moved_data(-1), C.DATA, M.REPEATED, detail="1 batch comes again"),
    case("three on", losses.moved_data(3), C.DATA, M.SKIPPED, detail="3 batches are left out", ways=UNKNOWN),
    case(
        "half a step on",
        losses.moved_data(1),
        C.DATA,
        M.SKIPPED,
        detail="1 batch is left out",
        ways=Ways(accumulation=2),
    ),
    case("other order", losses.other_order, C.DATA, M.REORDERED, detail="in another order"),
    case(
        "epoch anew in other order",
        losses.epoch_anew_in_other_order,
        C.DATA,
        M.REPEATED,
        detail="an epoch begins there",
    ),
    case("unknown", losses.unknown_data, C.DATA, M.DIFFERENT, detail="none of the reference's"),
]
WEIGHTS = [
    case("bf16", losses.rounded_weights(BRAIN), C.WEIGHTS, M.LOWER_PRECISION, detail="bfloat16, in 4 of 4 tensors"),
    case("fp16", losses.rounded_weights(HALF), C.WEIGHTS, M.LOWER_PRECISION, detail="float16"),
    case("fp16, sgd", losses.rounded_weights(HALF), C.WEIGHTS, M.LOWER_PRECISION, ways=SGD),
    case(
        "bf16 in part",
        losses.rounded_weights(BRAIN, ("head",)),
        C.WEIGHTS,
        M.LOWER_PRECISION,
        detail="1 of 4 tensors (head)",
    ),
    case(
        "bf16 of 10",
        losses.weights_of(10, BRAIN),
        C.WEIGHTS,
        M.LOWER_PRECISION,
        detail="after step 10, 10 steps behind, rounded to bfloat16",
    ),
    case(
        "of 10", losses.weights_of(10), C.WEIGHTS, M.OTHER_STEP, detail="the reference's after step 10, 10 steps behind"
    ),
    case("of 0", losses.weights_of(0), C.WEIGHTS, M.OTHER_STEP, detail="as at the start"),
    case(
        "head", losses.head_as_at_start, C.WEIGHTS, M.PARTLY_MISSING, detail="as at the start in 1 of 4 tensors (head)"
    ),
    case("noise", losses.noisy_weights, C.WEIGHTS, M.DIFFERENT, detail="of no step of the reference"),
    case("buffers", losses.no_buffers, C.BUFFERS, M.MISSING, detail="num_batches_tracked is 1; the reference has 21"),
    case("mean", losses.zero_mean, C.BUFFERS, M.DIFFERENT, detail="1 of 2 buffers"),
    case("hidden", losses.other_scale, C.GRADIENTS, M.DIFFERENT, detail="nothing that was seen explains it"),
]
SEVERAL = [
    case(
        "optimizer and schedule",
        (losses.no_optimizer, losses.schedule_at(0)),
        C.OPTIMIZER,
        M.MISSING,
        C.SCHEDULER,
        M.REBUILT,
    ),
    case("optimizer and data", (losses.no_optimizer, losses.data_anew), C.OPTIMIZER, M.MISSING, C.DATA, M.REPEATED),
    case(
        "generator and data",
        (losses.fresh_generator("torch"), losses.data_anew),
        C.RNG_TORCH,
        M.REBUILT,
        C.DATA,
        M.REPEATED,
    ),
    case(
        "data anew, with the loader's generator",
        (losses.fresh_loader, losses.data_anew),
        C.DATA,
        M.REPEATED,
        ways=LOADER,
    ),
    case(
        "weights and data",
        (losses.rounded_weights(BRAIN), losses.epoch_anew),
        C.WEIGHTS,
        M.LOWER_PRECISION,
        C.DATA,
        M.REPEATED,
    ),
    case("buffers and data", (losses.no_buffers, losses.epoch_anew), C.BUFFERS, M.MISSING, C.DATA, M.REPEATED),
    case(
        "weights and buffers", (losses.weights_of(10), losses.no_buffers), C.WEIGHTS, M.OTHER_STEP, C.BUFFERS, M.MISSING
    ),
    case(
        "weights alone",
        (
            losses.no_optimizer,
            losses.schedule_at(0),
            losses.data_anew,
            losses.no_buffers,
            *(losses.fresh_generator(name) for name in ("torch", "numpy", "random")),
        ),
        *(C.BUFFERS, M.MISSING, C.OPTIMIZER, M.MISSING, C.SCHEDULER, M.REBUILT, C.RNG_TORCH, M.REBUILT),
        *(C.RNG_NUMPY, M.REBUILT, C.RNG_RANDOM, M.REBUILT, C.DATA, M.REPEATED),
    ),
]
ALL = [*OPTIMIZER, *SCHEDULE, *GENERATORS, *DATA, *WEIGHTS, *SEVERAL]


def reference_of(ways: Ways) -> Run:
    """Return the uninterrupted run."""
    return run(Toy(ways=ways), 0, ways.total)


def only(found: tuple[int, Diagnosis] | None) -> Diagnosis:
    """Return the diagnosis of the second life."""
    assert found is not None
    assert found[0] == 1
    return found[1]


def said(lost: tuple[LostState, ...]) -> set[tuple[Component, Manner]]:
    """Return what was named."""
    return {(one.component, one.manner) for one in lost}


@pytest.mark.parametrize("planted", ALL, ids=lambda planted: planted.name.replace(" ", "-"))
@pytest.mark.parametrize("hint", [None, 20], ids=["", "hint"])
def test_planted_loss_is_named(planted: Case, hint: int | None) -> None:
    """Component, manner and step are named, with or without a hint, and nothing else is."""
    reference = reference_of(planted.ways)
    life = resumed(reference, planted.ways, planted.at, *planted.loses)
    found = only(diagnose(reference.records, [reference.records[:25], life.records], expected=[None, hint]))
    assert said(found.lost) == set(planted.says), found
    assert found.resumed_at == planted.at
    assert found.first_difference == planted.at + 1
    assert {one.step for one in found.lost} == {planted.at + 1}
    assert any(planted.detail in one.detail for one in found.lost), found.lost
    assert not {str(one.component) for one in found.lost} & set(found.equal)


@pytest.mark.parametrize(
    "ways", [PLAIN, LOADER, DRAWN, UNKNOWN, SGD], ids=["epoch", "loader", "drawn", "unknown", "sgd"]
)
@pytest.mark.parametrize("at", [0, 10, 20, 30])
def test_intact_life_has_no_diagnosis(ways: Ways, at: int) -> None:
    """Nothing is named where nothing was lost, whatever the way of training."""
    reference = reference_of(ways)
    assert diagnose(reference.records, [reference.records[:25], resumed(reference, ways, at).records]) is None

"""Planted losses: each takes something away from what a life resumes with."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

from .simulated import EPOCH, SAMPLES, Lose, Run, Toy, brain, half, single


def no_optimizer(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Give a new optimizer."""
    del fresh, reference
    toy.moments, toy.count = {}, {}


def zero_optimizer(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Make the state all zero, its counter kept."""
    del fresh, reference
    for state in toy.moments.values():
        for key, values in state.items():
            state[key] = [0.0] * len(values)


def no_second_moment(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Make one key zero."""
    del fresh, reference
    for state in toy.moments.values():
        state["exp_avg_sq"] = [0.0] * len(state["exp_avg_sq"])


def no_state_of_head(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Leave one parameter without state."""
    del fresh, reference
    del toy.moments["head"], toy.count["head"]


def rounded_optimizer(to: Callable[[float], float], names: tuple[str, ...] = ()) -> Lose:
    """Round the state of all parameters or some."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh, reference
        for name, state in toy.moments.items():
            if not names or name in names:
                for key, values in state.items():
                    state[key] = [to(value) for value in values]

    return lose


def optimizer_of(step: int) -> Lose:
    """Take the state of another step."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh
        other = copy.deepcopy(reference.saves[step])
        toy.moments, toy.count = other.moments, other.count

    return lose


def swapped_optimizer(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Give state to the wrong parameters."""
    del fresh, reference
    toy.moments["embed"], toy.moments["head"] = toy.moments["head"], toy.moments["embed"]


def counter_of(step: int) -> Lose:
    """Set the step counter."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh, reference
        toy.count = dict.fromkeys(toy.count, step)

    return lose


def schedule_at(step: float) -> Lose:
    """Put the schedule elsewhere."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh, reference
        toy.schedule_step = step

    return lose


def setting(name: str, value: object) -> Lose:
    """Give another value to the optimizer's group."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh, reference
        toy.settings[name] = value

    return lose


def fresh_generator(name: str) -> Lose:
    """Seed a generator as at the start."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del reference
        toy.rngs[name] = copy.deepcopy(fresh.rngs[name])

    return lose


def other_generator(name: str) -> Lose:
    """Seed a generator otherwise."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh, reference
        toy.rngs[name] = random.Random(12345)

    return lose


def generator_of(name: str, step: int) -> Lose:
    """Take a generator of another step."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh
        toy.rngs[name] = copy.deepcopy(reference.saves[step].rngs[name])

    return lose


def fresh_loader(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Draw the epoch's order from a loader's generator as at the start; keep the place in it."""
    del reference
    toy.rngs["loader"], toy.order = copy.deepcopy(fresh.rngs["loader"]), list(fresh.order)


def data_anew(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Begin the data anew."""
    del reference
    toy.batch, toy.epoch, toy.order = 0, 0, list(fresh.order)


def epoch_anew(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Begin the epoch anew: what was seen of it is not skipped."""
    del fresh, reference
    toy.batch = 0


def moved_data(batches: int) -> Lose:
    """Skip some batches too many, or too few."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh, reference
        at = toy.epoch * EPOCH + toy.batch + batches
        toy.epoch, toy.batch = divmod(at, EPOCH)
        if toy.ways.order == "epoch":
            toy.begin_epoch()

    return lose


def other_order(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Put the rest of the epoch in another order."""
    del fresh, reference
    done = toy.order[: toy.batch * 2]
    rest = toy.order[toy.batch * 2 :]
    toy.order = done + rest[::-1]


def epoch_anew_in_other_order(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Begin the epoch anew, in an order of its own."""
    del fresh, reference
    toy.batch, toy.order = 0, random.Random(77).sample(range(SAMPLES), SAMPLES)


def unknown_data(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Take samples that the reference never saw."""
    del fresh, reference
    toy.order = [number + 1000 for number in toy.order]


def rounded_weights(to: Callable[[float], float], names: tuple[str, ...] = ()) -> Lose:
    """Round the weights."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh, reference
        for name, values in toy.weights.items():
            if not names or name in names:
                toy.weights[name] = [to(value) for value in values]

    return lose


def weights_of(step: int, to: Callable[[float], float] = single) -> Lose:
    """Take the weights of another step."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh
        other = reference.saves[step].weights
        toy.weights = {name: [to(value) for value in values] for name, values in other.items()}

    return lose


def head_as_at_start(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Leave one layer as at the start."""
    del reference
    toy.weights["head"] = list(fresh.weights["head"])


def noisy_weights(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Make weights that are like no other."""
    del fresh, reference
    for values in toy.weights.values():
        values[:] = [single(value * 1.5 + 0.01) for value in values]


def no_buffers(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Leave the buffers as at the start."""
    del reference
    toy.buffers = copy.deepcopy(fresh.buffers)


def zero_mean(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Lose one buffer, but not the one that counts passes."""
    del fresh, reference
    toy.buffers["norm.running_mean"] = [0.0]


def no_accumulation(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Lose what was accumulated; the count goes on."""
    del fresh, reference
    toy.gradients = {name: [0.0] * len(values) for name, values in toy.gradients.items()}


def accumulation_from_zero(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Lose what was accumulated, and count anew."""
    no_accumulation(toy, fresh, reference)
    toy.micro = 0


def other_scale(toy: Toy, fresh: Toy, reference: Run) -> None:
    """Change something that no component shows."""
    del fresh, reference
    toy.gradient_scale = 1.0000001


def averaged_weights(series: list[dict[str, list[float]]], decay: float) -> Lose:
    """Take an exponential moving average of all weights so far, in single precision."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh, reference
        average = copy.deepcopy(series[0])
        for weights in series[1:]:
            for name, values in weights.items():
                average[name] = [
                    single(decay * old + (1 - decay) * new) for old, new in zip(average[name], values, strict=True)
                ]
        toy.weights = average

    return lose


def mean_weights(series: list[dict[str, list[float]]]) -> Lose:
    """Take the mean of some steps' weights."""

    def lose(toy: Toy, fresh: Toy, reference: Run) -> None:
        del fresh, reference
        toy.weights = {
            name: [single(sum(step[name][at] for step in series) / len(series)) for at in range(len(values))]
            for name, values in toy.weights.items()
        }

    return lose


HALF, BRAIN = half, brain

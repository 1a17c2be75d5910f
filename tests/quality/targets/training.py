"""A training that needs no library: every number depends on all steps, on a momentum and on a generator's state."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZE = 600
STEPS = 12
EVERY = 3

State = dict[str, Any]


class Training:
    """The weights, their momentum and the generator, all of which must be saved."""

    def __init__(self) -> None:
        """Start from step 0, the same in every run."""
        self.step = 0
        self.rng = random.Random(7)
        self.weights = [self.rng.uniform(-1, 1) for _ in range(SIZE)]
        self.momentum = [0.0] * SIZE

    def advance(self) -> None:
        """Do one step."""
        self.step += 1
        for i, weight in enumerate(self.weights):
            self.momentum[i] = 0.9 * self.momentum[i] + self.rng.gauss(weight, 0.1)
            self.weights[i] = weight - 0.01 * self.momentum[i]

    def state(self) -> State:
        """Return all that the next step depends on."""
        generator = self.rng.getstate()
        return {"step": self.step, "weights": self.weights, "momentum": self.momentum, "generator": generator}

    def restore(self, state: State) -> None:
        """Go on from a state."""
        version, numbers, gauss = state["generator"]
        self.step, self.weights, self.momentum = state["step"], state["weights"], state["momentum"]
        self.rng.setstate((version, tuple(numbers), gauss))


def read(path: Path) -> State:
    """Read a state that `write` has written."""
    state: State = json.loads(path.read_text(encoding="utf-8"))
    return state


def write(path: Path, state: object) -> None:
    """Write a state straight onto a path, in several writes."""
    with path.open("w", encoding="utf-8") as file:
        json.dump(state, file)


def publish(path: Path, state: object, temporary: Path | None = None) -> None:
    """Write a state as it should be done: a temporary name, synced, and then renamed."""
    temporary = temporary or path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 - a trainer prints


def train(out: Path, training: Training, save: Callable[[Training], None], say: Callable[[str], None] = say) -> None:
    """Train to the last step, save every third one, say both, and leave the final weights."""
    while training.step < STEPS:
        training.advance()
        say(f"step {training.step} loss {abs(training.weights[0]):.4f}")
        if training.step % EVERY == 0:
            save(training)
            say(f"saved step {training.step}")
    write(out / "final.json", training.weights)

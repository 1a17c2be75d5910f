"""What all trainings here share: their options, how a file is published, and the lines that they print."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

State = dict[str, Any]


def options(about: str, *losses: str) -> tuple[Path, str]:
    """Return the output folder, and what shall be lost (empty: nothing); one thread computes, so that bits are bits."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lose", choices=losses, default="")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    return chosen.out, chosen.lose


def publish(path: Path, state: State) -> None:
    """Write a file as a whole: under a temporary name, and then renamed."""
    temporary = path.with_name(path.name + ".tmp")
    torch.save(state, temporary)
    temporary.replace(path)


def read(path: Path) -> State:
    """Read what `publish` has written."""
    state: State = torch.load(path, weights_only=True)
    return state


def say_step(step: int, loss: torch.Tensor) -> None:
    """Print the line of a step."""
    print(f"step {step} loss {loss.item():.5f}", flush=True)  # noqa: T201 - a trainer prints


def say_saved(step: int) -> None:
    """Print that all of a save is there."""
    print(f"saved step {step}", flush=True)  # noqa: T201 - a trainer prints

"""One loss, before it is known whether another one explains it."""

from __future__ import annotations

from chaos.diagnosis.seam import Pair
from chaos.model import Component, LostState, Manner


def lost(pair: Pair, component: Component, manner: Manner, detail: str) -> LostState:
    """Return a loss that a pair of records shows."""
    rank, optimizer = pair.stream
    return LostState(component=component, manner=manner, step=pair.step, detail=detail, rank=rank, optimizer=optimizer)


def plural(number: int, word: str) -> str:
    """Return a number with its word, such as `1 step` or `10 steps`."""
    endings = ("", "s") if not word.endswith("tch") else ("", "es")
    return f"{number} {word}{endings[number != 1]}"


def away(steps: int) -> str:
    """Say how far a step is from the one that it should be: positive is ahead."""
    return f"{plural(abs(steps), 'step')} {'ahead' if steps > 0 else 'behind'}"

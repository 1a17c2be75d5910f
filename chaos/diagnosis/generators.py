"""How random generators differ, and which steps of the reference they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from chaos.diagnosis.finding import away, lost
from chaos.diagnosis.seam import Pair, Seam
from chaos.model import Component, LostState, Manner
from chaos.model.steps import RNG_CUDA, RNG_LOADER, RNG_NUMPY, RNG_RANDOM, RNG_TORCH

GENERATORS: Final[Mapping[str, Component]] = MappingProxyType(
    {
        RNG_TORCH: Component.RNG_TORCH,
        RNG_CUDA: Component.RNG_CUDA,
        RNG_NUMPY: Component.RNG_NUMPY,
        RNG_RANDOM: Component.RNG_RANDOM,
        RNG_LOADER: Component.RNG_LOADER,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A generator that differs: its component, the positions of the reference that it is of, and the loss."""

    name: str
    positions: tuple[int, ...]
    loss: LostState


def lost_generators(pair: Pair, seam: Seam) -> tuple[Generator, ...]:
    """Say how each generator that differs does."""
    return tuple(_generator(pair, seam, name) for name in GENERATORS if name in pair.differs)


def _generator(pair: Pair, seam: Seam, name: str) -> Generator:
    """Say how one generator differs."""
    component = GENERATORS[name]
    positions = seam.reference.where(pair.stream, name, pair.life.components.get(name))
    nearest = min(positions, key=lambda position: abs(position - pair.should_be), default=None)
    if nearest is None:
        manner, how = Manner.DIFFERENT, "has a state that it has at no step of the reference"
    elif 0 in positions:
        manner, how = Manner.REBUILT, "is as at the reference's first step: it was seeded anew"
    else:
        manner, how = (
            Manner.OTHER_STEP,
            f"is as at the reference's step {nearest + 1}, {away(nearest - pair.should_be)}",
        )
    return Generator(name=name, positions=positions, loss=lost(pair, component, manner, f"the {component} {how}"))

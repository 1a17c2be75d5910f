"""Weights as one vector each, read from the trainer's resume file without torch; how far two of them are apart."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.members import members_of, open_member
from chaos.checkpoints.tensors import Tensor
from chaos.errors import HarnessError
from chaos.model import Record

PREFIX: Final = "model."
_NUMBERS: Final = {"float32": np.float32, "float16": np.float16}

Weights: TypeAlias = NDArray[np.float32]  # (N,), the tensors in the order of their names


class Deviation(Record, kw_only=True):
    """How far weights are from others: elements with other bits, and the L2 norm of the difference over all."""

    elements_differing: int
    distance: float


def read_weights(path: Path) -> Weights:
    """Return all weights (N,) in the resume file at `path`, those of half precision widened.

    Raises HarnessError where the file is not a whole one of the trainer's.
    """
    try:
        with ExitStack() as stack:
            tensors = open_member(members_of(path)[0], stack).tensors
            names = sorted(name for name in tensors if name.startswith(PREFIX))
            return np.concatenate([_numbers(tensors[name]) for name in names])
    except (OSError, ValueError, KeyError, DamagedError, UnjudgeableError) as error:
        message = f"the weights in {path} cannot be read: {error}"
        raise HarnessError(message, hint="please report this, with the run folder") from error


def _numbers(tensor: Tensor) -> Weights:
    """Return a tensor's elements (n,) in row-major order; raises KeyError for a dtype that the trainer never writes."""
    return np.frombuffer(b"".join(tensor.chunks()), _NUMBERS[tensor.dtype]).astype(np.float32, copy=False)


def deviation(weights: Weights, expected: Weights) -> Deviation:
    """Return how far `weights` (N,) are from `expected` (N,), by bits and by numbers."""
    differing = weights.view(np.uint32) != expected.view(np.uint32)
    return Deviation(elements_differing=int(differing.sum()), distance=distance(weights, expected))


def distance(weights: Weights, others: Weights) -> float:
    """Return the L2 norm of the difference, computed in double precision."""
    return float(np.linalg.norm(weights.astype(np.float64) - others))


class StepWeights:
    """The weights after each step of a run, kept in a folder, one file a step."""

    def __init__(self, folder: Path) -> None:
        """Keep them in `folder`, which is made."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, step: int, weights: Weights) -> None:
        """Keep the weights after `step`."""
        np.save(self._folder / f"{step:06d}.npy", weights)

    def after(self, step: int) -> Weights:
        """Return the weights after `step`."""
        found: Weights = np.load(self._folder / f"{step:06d}.npy")
        return found

"""Digests of the states of all generators that a training may draw from; none is drawn from here."""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Iterator, Mapping

import torch

from .tensors import digest_of


def digests(loaders: list[torch.Generator]) -> dict[str, str]:
    """Return the digest of each generator's state by its component's name; `loaders` are those of data loaders."""
    return {name: digest_of((("", state),)) for name, state in _states(loaders)}


def _states(loaders: list[torch.Generator]) -> Iterator[tuple[str, object]]:
    """Yield the state of each generator that is there."""
    yield "rng.torch", torch.default_generator.get_state()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        yield "rng.cuda", [generator.get_state().cpu() for generator in torch.cuda.default_generators]
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        yield "rng.numpy", _plain(numpy_random.get_state(legacy=False))
    version, words, gauss = random.getstate()
    yield "rng.random", array("I", words).tobytes() + repr((version, gauss)).encode()
    if loaders:
        yield "rng.loader", [generator.get_state() for generator in loaders]


def _plain(value: object) -> object:
    """Return a state in which each array is its bytes."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value.tobytes() if hasattr(value, "tobytes") else value

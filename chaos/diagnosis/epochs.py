"""Where in its epoch a batch is, told by the samples: an epoch ends where one comes again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """The place of each batch of a run in its epoch, from 0, and how many batches an epoch has (None: none ended)."""

    places: tuple[int, ...]
    length: int | None


def epochs_of(samples: Sequence[tuple[int, ...]]) -> Epochs | None:
    """Return where batches lie in their epochs (None: their samples are not known, or they come in no epochs)."""
    if not samples or not all(samples):
        return None
    if any(len(set(ids)) < len(ids) for ids in samples):
        return None  # drawn with replacement
    places: list[int] = []
    lengths: set[int] = set()
    seen: set[int] = set()
    for ids in samples:
        if not seen.isdisjoint(ids):
            lengths.add(places[-1] + 1)
            seen = set()
        places.append(places[-1] + 1 if seen else 0)
        seen.update(ids)
    if len(lengths) > 1 or (lengths and places[-1] >= min(lengths)):
        return None
    return Epochs(places=tuple(places), length=next(iter(lengths), None))


def batches_until_repeat(samples: Sequence[tuple[int, ...]]) -> int | None:
    """Return how many batches there are before a sample comes again (None: none does)."""
    seen: set[int] = set()
    for number, ids in enumerate(samples):
        if not seen.isdisjoint(ids):
            return number
        seen.update(ids)
    return None

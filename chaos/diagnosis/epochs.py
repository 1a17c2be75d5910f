"""Where in its epoch a batch is, told by the samples: an epoch ends where one comes again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """The place of each batch of a run in its epoch, from 0, and how many batches an epoch has (None: none ended)."""

    places: tuple[int, ...]
    length: int | None


def epochs_of(samples: Sequence[tuple[int, ...] | None]) -> Epochs | None:
    """Return where batches lie in their epochs; None where samples are not known, or come in no epochs.

    `None` stands for a batch that was left out: then the length of an epoch is worked out from the numbers of samples.
    """
    seen = [ids for ids in samples if ids is not None]
    if not seen or not all(seen) or any(len(set(ids)) < len(ids) for ids in seen):
        return None  # not known, or drawn with replacement
    return _counted(seen) if len(seen) == len(samples) else _worked_out(samples, seen)


def _counted(samples: Sequence[tuple[int, ...]]) -> Epochs | None:
    """Return the epochs of batches that are all known."""
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


def _worked_out(samples: Sequence[tuple[int, ...] | None], seen: Sequence[tuple[int, ...]]) -> Epochs | None:
    """Return the epochs of batches of which some were left out, if only one length agrees with the others."""
    number, size = max(map(max, seen)) + 1, max(map(len, seen))
    lengths = {number // size, -(-number // size)}
    fitting = [length for length in sorted(lengths) if length > 1 and _is_fitting(samples, length)]
    if len(fitting) != 1 or len(samples) <= fitting[0]:
        return None
    return Epochs(places=tuple(at % fitting[0] for at in range(len(samples))), length=fitting[0])


def _is_fitting(samples: Sequence[tuple[int, ...] | None], length: int) -> bool:
    """Tell whether no sample comes twice in an epoch of this length."""
    for begin in range(0, len(samples), length):
        numbers = [number for ids in samples[begin : begin + length] for number in ids or ()]
        if len(set(numbers)) < len(numbers):
            return False
    return True


def batches_until_repeat(samples: Sequence[tuple[int, ...]]) -> int | None:
    """Return how many batches there are before a sample comes again (None: none does)."""
    seen: set[int] = set()
    for number, ids in enumerate(samples):
        if not seen.isdisjoint(ids):
            return number
        seen.update(ids)
    return None

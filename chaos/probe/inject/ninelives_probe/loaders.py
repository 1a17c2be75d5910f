"""Where batches came from: the positions in the data set that a loader drew, found again by the batch's digest."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Mapping, ValuesView
from typing import Any

import torch

from .tensors import digest_of

_MOST_REMEMBERED = 256
_MOST_DEEP = 8


class Samples:
    """The tensors that loaders gave out lately, by digest, each with the ids of its samples."""

    def __init__(self) -> None:
        """Remember none."""
        self._drawn: weakref.WeakKeyDictionary[Any, deque[tuple[int, ...]]] = weakref.WeakKeyDictionary()
        self._given: OrderedDict[str, tuple[int, ...]] = OrderedDict()
        self._generators: list[weakref.ref[torch.Generator]] = []

    def of(self, digest: str) -> tuple[int, ...]:
        """Return the ids of the samples in a tensor of a loader's batch; none where it is not from a loader."""
        return self._given.get(digest, ())

    def note_loader(self, iterator: Any, loader: Any) -> None:  # noqa: ANN401 - torch's own classes
        """Take a new iterator, or a new epoch of an old one: what it drew ahead before is not given out any more."""
        self._drawn[iterator] = deque()
        for owner in (loader, getattr(loader, "sampler", None)):
            generator = getattr(owner, "generator", None)
            is_known = any(reference() is generator for reference in self._generators)
            if isinstance(generator, torch.Generator) and not is_known:
                self._generators.append(weakref.ref(generator))

    def note_drawn(self, iterator: Any, index: object) -> None:  # noqa: ANN401 - torch's own class
        """Take what the sampler drew for a coming batch."""
        several = index if isinstance(index, list | tuple) else [index]
        whole = [number for number in several if isinstance(number, int)]
        self._drawn.setdefault(iterator, deque()).append(tuple(whole) if len(whole) == len(several) else ())

    def note_given(self, iterator: Any, batch: object) -> None:  # noqa: ANN401 - torch's own class
        """Take a batch that an iterator gives out: they come in the order in which they were drawn."""
        queue = self._drawn.get(iterator)
        ids = queue.popleft() if queue else ()
        if not ids:
            return
        for tensor in _tensors_in(batch):
            digest = digest_of((("", tensor),))
            self._given[digest] = ids
            self._given.move_to_end(digest)
        while len(self._given) > _MOST_REMEMBERED:
            self._given.popitem(last=False)

    def generators(self) -> list[torch.Generator]:
        """Return the generators of loaders and their samplers that are still there, in the order of their first use."""
        alive = [(reference, reference()) for reference in self._generators]
        self._generators = [reference for reference, generator in alive if generator is not None]
        return [generator for _, generator in alive if generator is not None]


def _tensors_in(value: object, depth: int = 0) -> list[torch.Tensor]:
    """Return the tensors in a batch."""
    if isinstance(value, torch.Tensor):
        return [value]
    if depth >= _MOST_DEEP:
        return []
    items = value.values() if isinstance(value, Mapping) else value
    if not isinstance(items, list | tuple | ValuesView):
        return []
    return [tensor for item in items for tensor in _tensors_in(item, depth + 1)]

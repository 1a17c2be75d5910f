"""Makes numbers zero in text and in pickles, where they do not lie open as a tensor does."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import Final

from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.flatten import flatten
from chaos.checkpoints.inert import DtypeName, StorageReference
from chaos.checkpoints.numbers import zeros_in_pickle
from chaos.checkpoints.pickles import load_pickle
from chaos.checkpoints.tensors import ITEM_BYTES

_MOST_TRIES: Final = 4096
_Facts = tuple[dict[str, str], tuple[object, ...]]


class _Elsewhere:
    """Stands for a storage whose bytes nobody needs."""

    def __init__(self, size_bytes: int) -> None:
        """Be as long as is asked for."""
        self.size_bytes = size_bytes

    def verified(self) -> Iterator[bytes]:
        """Yield nothing."""
        return iter(())

    def part(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield nothing."""
        _ = start, stop
        return iter(())


def zeroed_json(text: bytes, is_wanted: Callable[[str], bool]) -> bytes:
    """Return a JSON object in which every number below the keys that are wanted is zero; raises UnjudgeableError."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnjudgeableError("it is no single JSON value") from error
    if not isinstance(found, dict):
        raise UnjudgeableError("it has no keys")
    return json.dumps(_zeroed(found, "", is_wanted)).encode()


def _zeroed(value: object, name: str, is_wanted: Callable[[str], bool]) -> object:
    """Return a value with zeros for the wanted numbers in it."""
    if isinstance(value, dict):
        return {key: _zeroed(item, f"{name}.{key}" if name else key, is_wanted) for key, item in value.items()}
    if isinstance(value, list):
        return [_zeroed(item, f"{name}.{place}" if name else str(place), is_wanted) for place, item in enumerate(value)]
    if isinstance(value, int | float) and not isinstance(value, bool) and is_wanted(name):
        return type(value)(0)
    return value


def zeroed_pickle(data: bytes, wanted: Collection[str]) -> bytes:
    """Return a pickle in which the numbers among the leaves `wanted` are zero, as far as they stand open in it.

    Which number belongs to which leaf is found out by loading, inertly: one is changed only where nothing but wanted
    leaves changes with it. Raises DamagedError, UnjudgeableError.
    """
    before = _facts(data)
    changed = bytearray(data)
    for tries, (at, zeros) in enumerate(zeros_in_pickle(data)):
        if tries >= _MOST_TRIES:
            raise UnjudgeableError(f"its pickle holds more than {_MOST_TRIES} numbers")
        if data[at : at + len(zeros)] != zeros and _is_apart(data, at, zeros, before, wanted):
            changed[at : at + len(zeros)] = zeros
    return bytes(changed)


def _is_apart(data: bytes, at: int, zeros: bytes, before: _Facts, wanted: Collection[str]) -> bool:
    """Tell whether a zero in one place changes wanted leaves and nothing else."""
    try:
        values, tensors = _facts(data[:at] + zeros + data[at + len(zeros) :])
    except (DamagedError, UnjudgeableError):
        return False
    if tensors != before[1] or values.keys() != before[0].keys():
        return False
    different = {name for name, digest in values.items() if digest != before[0][name]}
    return bool(different) and different <= set(wanted)


def _facts(data: bytes) -> _Facts:
    """Return the digest of each value in a pickle, and where each of its tensors lies."""
    found = flatten(load_pickle(data, _storage))
    values = {leaf.name: leaf.digest for leaf in found.leaves}
    forms = tuple((name, t.dtype, t.shape, t.strides, t.offset, t.storage.size_bytes) for name, t in found.tensors)
    return values, forms


def _storage(kind: DtypeName, key: str, count: int) -> StorageReference:
    """Stand for the storage that a torch pickle refers to."""
    _ = key
    return StorageReference(kind.name, _Elsewhere(count * ITEM_BYTES[kind.name]))

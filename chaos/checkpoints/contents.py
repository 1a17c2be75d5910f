"""What a reader returns: the named parts of one file, and the one pass that digests and verifies all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from chaos.checkpoints.flatten import flatten
from chaos.checkpoints.leaves import Leaf, clean_name, distinct_names, tensor_hasher, tensor_leaf
from chaos.checkpoints.tensors import Storage, Tensor


class Contents:
    """The values, tensors and storages of one file (or of one set of files that belong together)."""

    __slots__ = ("format", "leaves", "needed", "storages", "tensors")

    def __init__(
        self,
        kind: str,
        leaves: Sequence[Leaf] = (),
        tensors: Iterable[tuple[str, Tensor]] = (),
        storages: Sequence[Storage] = (),
    ) -> None:
        """Keep the parts; `storages` are all to verify, also those that no tensor looks at.

        `needed` maps the names of other files of the folder to the leaf names that must be in them.
        """
        named = list(tensors)
        # Values and tensors share one space of names: make them distinct together.
        names = distinct_names([*(leaf.name for leaf in leaves), *(clean_name(name or "value") for name, _ in named)])
        self.format = kind
        self.leaves = [
            leaf if leaf.name == name else replace(leaf, name=name) for leaf, name in zip(leaves, names, strict=False)
        ]
        self.tensors = dict(zip(names[len(leaves) :], (tensor for _, tensor in named), strict=True))
        self.storages = storages
        self.needed: dict[str, tuple[str, ...]] = {}


def structured(kind: str, value: object, storages: Sequence[Storage] = ()) -> Contents:
    """Return the contents of a nested structure."""
    found = flatten(value)
    return Contents(kind, found.leaves, found.tensors, storages)


def digested(contents: Contents) -> list[Leaf]:
    """Return all leaves with their digests; raises DamagedError when a storage fails its checksum.

    Each storage is read once from start to end, feeding its checksum and the digests of all tensors that lie in it;
    strided views are gathered in a second reading.
    """
    by_storage: dict[int, list[tuple[str, Tensor]]] = {}
    for name, tensor in contents.tensors.items():
        by_storage.setdefault(id(tensor.storage), []).append((name, tensor))
    leaves = list(contents.leaves)
    for group in by_storage.values():
        leaves.extend(_storage_leaves(group))
    for storage in contents.storages:
        if id(storage) not in by_storage:
            for _ in storage.verified():
                pass
    return leaves


def _storage_leaves(group: list[tuple[str, Tensor]]) -> list[Leaf]:
    """Return the leaves of all tensors in one storage, which is verified on the way."""
    flat = [(tensor.offset, tensor.offset + tensor.size_bytes, tensor_hasher(tensor)) for _, tensor in group]
    active = [part for part, (_, tensor) in zip(flat, group, strict=True) if tensor.is_contiguous]
    at = 0
    for piece in group[0][1].storage.verified():
        stop = at + len(piece)
        for start, end, hasher in active:
            if start < stop and end > at:
                whole = start <= at and end >= stop
                hasher.update(piece if whole else memoryview(piece)[max(0, start - at) : end - at])
        at = stop
    leaves = []
    for (name, tensor), (_, _, hasher) in zip(group, flat, strict=True):
        if not tensor.is_contiguous:
            for piece in tensor.chunks():
                hasher.update(piece)
        leaves.append(tensor_leaf(name, tensor, hasher.hexdigest()))
    return leaves

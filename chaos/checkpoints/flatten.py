"""From a nested structure to named leaves: the path to each value, joined with dots."""

from __future__ import annotations

from chaos.checkpoints.damage import UnjudgeableError
from chaos.checkpoints.inert import (
    DtypeName,
    NumpyArray,
    NumpyScalar,
    Opaque,
    PickledDict,
    Rebuilder,
    SealedType,
    SetValue,
    StorageReference,
    TensorValue,
)
from chaos.checkpoints.leaves import Leaf, child_name, encoded, scalar_leaf
from chaos.checkpoints.tensors import Tensor

MAX_LEAVES = 2_000_000
MAX_DEPTH = 200
# A pickle of some hundred bytes can name each list twice in the next: what is met again has a limit of its own.
MAX_REPEATS = 200_000
NOTHING: tuple[object, ...] = ()


class Flattened:
    """The values and the tensors found so far, each with its path."""

    def __init__(self) -> None:
        """Begin with none."""
        self.leaves: list[Leaf] = []
        self.tensors: list[tuple[str, Tensor]] = []
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self._repeats = 0

    def add(self, name: str, value: object) -> None:
        """Add everything in `value` under `name`; raises UnjudgeableError beyond the limits on depth and number."""
        if len(self.leaves) + len(self.tensors) >= MAX_LEAVES:
            raise UnjudgeableError(f"it has more than {MAX_LEAVES} values")
        if isinstance(value, Tensor):
            self.tensors.append((name, value))
        elif value is None or isinstance(value, bool | int | float | complex | str | bytes | bytearray):
            # Protocol 5 keeps a bytearray one, earlier protocols rebuild it here as bytes: one content, one leaf.
            self.leaves.append(scalar_leaf(name, bytes(value) if isinstance(value, bytearray) else value))
        else:
            self._add_nested(name, value)

    def _add_nested(self, name: str, value: object) -> None:
        """Add what has an inside, once on each path: a structure that contains itself ends there."""
        if id(value) in self._open:
            self.leaves.append(scalar_leaf(name, "itself", "cycle"))
            return
        if len(self._open) >= MAX_DEPTH:
            raise UnjudgeableError(f"it is nested deeper than {MAX_DEPTH} levels")
        self._count_repeats(value)
        self._open.add(id(value))
        try:
            self._add_parts(name, value)
        finally:
            self._open.discard(id(value))

    def _count_repeats(self, value: object) -> None:
        """Count what was met before, but for the empty tuple, of which there is one; raises UnjudgeableError."""
        if id(value) in self._seen and value is not NOTHING:
            self._repeats += 1
            if self._repeats > MAX_REPEATS:
                raise UnjudgeableError(f"it holds the same objects more than {MAX_REPEATS} times")
        self._seen.add(id(value))

    def _add_parts(self, name: str, value: object) -> None:
        """Add the parts of a container, a tensor with attributes or a stand-in."""
        match value:
            case dict():
                self._add_entries(name, value)
            case list() | tuple():
                self._add_items(name, value, type(value).__name__)
            case TensorValue():
                self.add(name, value.tensor)
                if value.attributes:
                    self.add(child_name(name, "__dict__"), value.attributes)
            case NumpyArray(value=None):
                self._add_items(name, value.items, "ndarray")
            case NumpyArray():
                self.add(name, value.value)
            case NumpyScalar():
                self.leaves.append(scalar_leaf(name, value.data, f"numpy.{value.dtype}"))
            case SetValue() | set() | frozenset():
                items = value.items if isinstance(value, SetValue) else value
                self._add_items(name, sorted(items, key=encoded), "set")
            case Opaque():
                self._add_opaque(name, value)
            case _:
                self._add_named(name, value)

    def _add_entries(self, name: str, entries: dict[object, object]) -> None:
        """Add a dict's values; an empty one is a leaf of its own."""
        if not entries:
            self.leaves.append(scalar_leaf(name, "{}", "dict"))
        for key, item in entries.items():
            self.add(child_name(name, key), item)
        if isinstance(entries, PickledDict) and entries.attributes:
            self.add(child_name(name, "__dict__"), entries.attributes)

    def _add_items(self, name: str, items: list[object] | tuple[object, ...], kind: str) -> None:
        """Add a sequence's values; an empty one is a leaf of its own."""
        if not items:
            self.leaves.append(scalar_leaf(name, f"empty {kind}", kind))
        for index, item in enumerate(items):
            self.add(child_name(name, index), item)

    def _add_opaque(self, name: str, value: Opaque) -> None:
        """Add an unknown object: its name, and whatever it was made of."""
        self.leaves.append(scalar_leaf(name, value.name, "object"))
        # None of these may be made here: what is met again is known by its identity, which a passing object gives on.
        parts = {"args": value.arguments, "parts": value.parts or NOTHING, "state": value.state}
        for part, content in parts.items():
            if content not in ((), None):
                self.add(child_name(name, part), content)

    def _add_named(self, name: str, value: object) -> None:
        """Add what has a name only: a class, a function, a dtype."""
        match value:
            case SealedType():
                self.leaves.append(scalar_leaf(name, value.__qualname__, "class"))
            case DtypeName() | Rebuilder():
                self.leaves.append(scalar_leaf(name, value.name, "name"))
            case StorageReference():
                size = value.storage.size_bytes
                self.add(name, Tensor("uint8", 1, (size,), (1,), 0, value.storage))
            case _:
                self.leaves.append(scalar_leaf(name, type(value).__name__, "object"))


def flatten(value: object) -> Flattened:
    """Return the leaves of a structure."""
    found = Flattened()
    try:
        found.add("", value)
    except RecursionError as error:
        raise UnjudgeableError("it is nested too deeply to be read here") from error
    return found

"""The leaves of two checkpoints side by side, in one pass over both: the one comparison that there is.

Tensors are read in the order in which they lie in the left file, a chunk of each side at a time, into the same two
buffers. Checksums are worked out from the same chunks, and once only where both sides are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

from chaos.checkpoints.elements import ElementDifference, largest_absolute, shown_element
from chaos.checkpoints.leaves import Leaf, tensor_leaf
from chaos.checkpoints.rounding import Guess, Guesses
from chaos.checkpoints.sides import Part, Reading, Side
from chaos.checkpoints.streams import note_both
from chaos.checkpoints.tensors import Tensor
from chaos.checkpoints.window import CHUNK_BYTES
from chaos.model import DifferenceKind

# Two pieces, and what is worked out of them, stay in a core's cache.
PIECE_BYTES = CHUNK_BYTES // 2
# The types of the leaves that stand for containers with nothing in them.
EMPTY_KINDS = frozenset({"dict", "list", "tuple", "set", "ndarray"})
NO_GUESS: frozenset[Guess] = frozenset()


class Pair(NamedTuple):
    """One name on both sides, compared; `kind` is None where all bits are equal.

    `is_tensor` tells whether it is one on either side, `are_tensors` whether on both; `elements` counts those of a
    tensor of the same dtype and shape on both. `guesses` are what its difference looks like. `member` is the file of a
    folder that it is in. `is_empty` tells that all there is of it is a container with nothing in it, on one side.
    """

    name: str
    kind: DifferenceKind | None
    is_tensor: bool
    are_tensors: bool
    is_float: bool
    elements: int = 0
    difference: ElementDifference | None = None
    left: str = ""
    right: str = ""
    guesses: frozenset[Guess] = NO_GUESS
    member: str = ""
    is_empty: bool = False


def pairs(left: Side, right: Side, is_wanted: Callable[[str], bool]) -> Iterator[Pair]:
    """Yield every name of either side that is wanted, compared; raises UsageError when a side is not whole."""
    for prefix in sorted(left.members.keys() | right.members.keys()):
        with ExitStack() as stack:
            parts = left.open(prefix, stack), right.open(prefix, stack)
            yield from (pair._replace(member=prefix) for pair in _member_pairs(*parts, is_wanted))
            for part in parts:
                part.finish()
    left.require_whole()
    right.require_whole()


def _member_pairs(left: Part, right: Part, is_wanted: Callable[[str], bool]) -> Iterator[Pair]:
    """Yield the pairs of one member: values and what is on one side only, then tensors as they lie in the file."""
    shared = left.tensors.keys() & right.tensors.keys()
    for name in sorted({*left.leaves, *right.leaves, *left.tensors, *right.tensors} - shared):
        if is_wanted(name):
            yield _value_pair(name, _leaf(left, name), _leaf(right, name))
    comparison = Comparison(left, right)
    for name in sorted(shared, key=lambda name: _place(left, name)):
        if is_wanted(name):
            yield comparison.pair(name, left.tensors[name], right.tensors[name])


def _place(part: Part, name: str) -> tuple[int, int]:
    """Return where a tensor lies."""
    tensor = part.tensors[name]
    return part.reading(tensor.storage).number, tensor.offset


def _leaf(part: Part, name: str) -> Leaf | None:
    """Return a leaf, for a tensor one without a digest."""
    tensor = part.tensors.get(name)
    return part.leaves.get(name) if tensor is None else tensor_leaf(name, tensor, "")


def _value_pair(name: str, left: Leaf | None, right: Leaf | None) -> Pair:
    """Return the pair of a name that is not a tensor on both sides."""
    either = left or right
    kind: DifferenceKind | None = None
    if left is None:
        kind = DifferenceKind.ONLY_B
    elif right is None:
        kind = DifferenceKind.ONLY_A
    elif left.is_tensor or right.is_tensor:
        kind = DifferenceKind.FORM
    elif (left.digest, left.dtype) != (right.digest, right.dtype):
        # The type of a value counts as the dtype of a tensor does: True is not 1.
        kind = DifferenceKind.VALUE
    is_tensor = any(leaf is not None and leaf.is_tensor for leaf in (left, right))
    is_float = any(leaf is not None and leaf.is_tensor and "float" in leaf.dtype for leaf in (left, right))
    shown = ("", "") if kind is None or either is None else _shown_values(left, right)
    is_empty = (left is None or right is None) and either is not None and either.dtype in EMPTY_KINDS
    return Pair(name, kind, is_tensor, False, is_float, left=shown[0], right=shown[1], is_empty=is_empty)


def _shown_values(left: Leaf | None, right: Leaf | None) -> tuple[str, str]:
    """Return both values for people, told apart by type or digest where their texts are the same."""
    one, two = ("" if leaf is None else leaf.shown for leaf in (left, right))
    if left is None or right is None or one != two:
        return one, two
    if left.dtype != right.dtype:
        return f"{one} ({left.dtype})", f"{two} ({right.dtype})"
    return f"{one} (digest {left.digest[:8]})", f"{two} (digest {right.digest[:8]})"


class Comparison:
    """Compares tensors of one member, a chunk at a time in two buffers."""

    def __init__(self, left: Part, right: Part) -> None:
        """Read from two parts."""
        self._parts = (left, right)
        self._buffers = (bytearray(PIECE_BYTES), bytearray(PIECE_BYTES))

    def pair(self, name: str, left: Tensor, right: Tensor) -> Pair:
        """Return the pair of a name that is a tensor on both sides; raises UsageError."""
        is_float = "float" in left.dtype or "float" in right.dtype
        if left.shape == right.shape and left.dtype == right.dtype:
            return self._same_form(name, left, right, is_float=is_float)
        guesses, difference = Guesses(left.dtype, right.dtype), ElementDifference()
        is_tried = left.shape == right.shape and guesses.is_readable
        for one, two, _ in self._pieces(*_without_repeats(left, right)) if is_tried else ():
            guesses.see(one, two)
            difference.note(largest_absolute(*guesses.numbers(one, two), at_least=difference.largest_absolute), 0)
        shown = tensor_leaf(name, left, "").shown, tensor_leaf(name, right, "").shown
        left_over = guesses.left_over if is_tried and 0 not in left.shape else NO_GUESS
        return Pair(name, DifferenceKind.FORM, True, True, is_float, 0, difference, *shown, left_over)

    def _same_form(self, name: str, left: Tensor, right: Tensor, *, is_float: bool) -> Pair:
        """Return the pair of two tensors of the same dtype and shape."""
        guesses, difference = Guesses(left.dtype, right.dtype), ElementDifference()
        elements = math.prod(left.shape)
        left, right = _without_repeats(left, right)
        shown = ("", "")
        for one, two, is_equal in self._pieces(left, right):
            if is_equal:
                guesses.see_equal(one)
                continue
            difference.add_piece(left.dtype, left.item_bytes, one, two)
            guesses.see(one, two)
            if elements == 1:
                shown = shown_element(left.dtype, one), shown_element(right.dtype, two)
        if not difference.differing:
            return Pair(name, None, True, True, is_float, elements)
        difference.repeat(elements // math.prod(left.shape))
        left_over = guesses.left_over | ({Guess.SAME_NUMBERS} if difference.is_of_equal_numbers else NO_GUESS)
        return Pair(name, DifferenceKind.ELEMENTS, True, True, is_float, elements, difference, *shown, left_over)

    def _pieces(self, left: Tensor, right: Tensor) -> Iterator[tuple[bytearray, bytearray, bool]]:
        """Yield as many elements of both sides at a time, and whether all their bytes are equal."""
        sources = self._sources(left, right)
        count = math.prod(left.shape)
        most = max(1, PIECE_BYTES // max(left.item_bytes, right.item_bytes, 1))
        for start in range(0, count, most):
            length = min(most, count - start)
            one = _sized(self._buffers[0], length * left.item_bytes)
            two = _sized(self._buffers[1], length * right.item_bytes)
            sources[0].fill(one)
            sources[1].fill(two)
            is_equal = one == two
            _note(sources, (one, two), is_equal=is_equal)
            yield one, two, is_equal

    def _sources(self, left: Tensor, right: Tensor) -> tuple[Source, Source]:
        """Return where the elements of both sides come from, in the same order."""
        is_same_layout = left.strides == right.strides and _is_dense(left)
        one, two = (
            Flat(part.reading(tensor.storage), tensor.offset)
            if tensor.is_contiguous or is_same_layout
            else Gathered(part, tensor)
            for part, tensor in zip(self._parts, (left, right), strict=True)
        )
        return one, two


class Flat:
    """The elements as they lie in the storage."""

    def __init__(self, reading: Reading, start: int) -> None:
        """Begin at offset `start`."""
        self.reading = reading
        self.start = self._stop = start

    def fill(self, buffer: bytearray) -> None:
        """Read the next bytes; raises UsageError."""
        self.start = self._stop
        self.reading.fill(self.start, buffer)
        self._stop += len(buffer)


class Gathered:
    """The elements of a strided view, gathered in row-major order; what the view spans is in memory meanwhile."""

    def __init__(self, part: Part, tensor: Tensor) -> None:
        """Begin with the first element."""
        self._part = part
        with part.side.reading(part.prefix):
            self._pieces = tensor.chunks()
        self._rest = memoryview(b"")

    def fill(self, buffer: bytearray) -> None:
        """Take the next bytes; raises UsageError."""
        filled = 0
        while filled < len(buffer):
            if not self._rest:
                with self._part.side.reading(self._part.prefix):
                    self._rest = memoryview(next(self._pieces))
            taken = self._rest[: len(buffer) - filled]
            buffer[filled : filled + len(taken)] = taken
            self._rest = self._rest[len(taken) :]
            filled += len(taken)


Source = Flat | Gathered


def _note(sources: tuple[Source, Source], pieces: tuple[bytearray, bytearray], *, is_equal: bool) -> None:
    """Work a piece of each side into its checksum; one that was gathered is verified by itself at the end."""
    one, two = sources
    flat = [(source, piece) for source, piece in zip(sources, pieces, strict=True) if isinstance(source, Flat)]
    for source, _ in flat:
        source.reading.reach(source.start)
    if is_equal and isinstance(one, Flat) and isinstance(two, Flat):
        note_both((one.reading.stream, two.reading.stream), (one.start, two.start), pieces)
        return
    for source, piece in flat:
        source.reading.note(source.start, piece)


def _sized(buffer: bytearray, size: int) -> bytearray:
    """Return a buffer of exactly `size` bytes: this one, if it fits."""
    # A slice of the large one would have to be compared byte by byte; whole bytearrays are compared at once.
    return buffer if len(buffer) == size else bytearray(size)


def _without_repeats(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Return two views of one shape without the dimensions along which both repeat the same bytes."""
    each = list(zip(left.shape, left.strides, right.strides, strict=True))
    if not any(length > 1 and one == two == 0 for length, one, two in each):
        return left, right
    shape = tuple(min(length, 1) if one == two == 0 else length for length, one, two in each)
    one, two = (
        Tensor(side.dtype, side.item_bytes, shape, side.strides, side.offset, side.storage) for side in (left, right)
    )
    return one, two


def _is_dense(tensor: Tensor) -> bool:
    """Tell whether the elements lie without gaps, in whatever order of the dimensions."""
    expected = tensor.item_bytes
    dimensions = sorted((stride, length) for stride, length in zip(tensor.strides, tensor.shape, strict=True))
    for stride, length in dimensions:
        if length > 1:
            if stride != expected:
                return False
            expected *= length
    return True

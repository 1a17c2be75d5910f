"""Compares two checkpoints by bits, not by values: 0.0 is not -0.0, and a NaN equals itself."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path

from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.elements import ElementDifference
from chaos.checkpoints.examine import NOTHING, examine
from chaos.checkpoints.leaves import Leaf
from chaos.checkpoints.members import Member, members_of, open_member
from chaos.checkpoints.tensors import Tensor
from chaos.errors import UsageError
from chaos.model import TensorDifference


class TensorSource:
    """Finds the tensors of a checkpoint by name, with one member open at a time."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """Look at `path`; what is open is closed with `stack`."""
        self._members = members_of(path)
        self._inner = ExitStack()
        stack.callback(self._close)
        self._current: Member | None = None
        self._tensors: dict[str, Tensor] = {}

    def _close(self) -> None:
        """Close the member that is open now, which need not be the one that was open at first."""
        self._inner.close()

    def tensor(self, name: str) -> Tensor:
        """Return the tensor called `name`; raises KeyError when no member has it."""
        if name not in self._tensors:
            self._open(self.member_of(name))
        return self._tensors[name]

    def member_of(self, name: str) -> Member:
        """Return the member that the name lies in: that with the longest prefix of it; raises KeyError."""
        fitting = [member for member in self._members if not member.prefix or name.startswith(f"{member.prefix}/")]
        if not fitting:
            raise KeyError(name)
        return max(fitting, key=lambda member: len(member.prefix))

    def _open(self, member: Member) -> None:
        """Open a member in place of the one that was open."""
        self._inner.close()
        self._inner = ExitStack()
        contents = open_member(member, self._inner)
        self._tensors = {member.leaf_name(name): tensor for name, tensor in contents.tensors.items()}


def compare(left: Path, right: Path, without: frozenset[str] = NOTHING) -> TensorDifference:
    """Return how two whole checkpoints differ, apart from the leaves named in `without`.

    `tensors` counts the names that are tensors on both sides, `tensors_differing` those with other bits, dtype or shape
    (these are in `shape_or_dtype` too, and their elements are not counted). `leaves_differing` are the other values
    that differ. `first_name` is the first name in sorted order that differs in any way. Raises UsageError when one side
    is not whole.
    """
    one, two = _leaves(left, without), _leaves(right, without)
    both = sorted(one.keys() & two.keys())
    tensors = [name for name in both if one[name].is_tensor and two[name].is_tensor]
    changed = [name for name in both if one[name].digest != two[name].digest or _form(one[name]) != _form(two[name])]
    unlike = [name for name in changed if _form(one[name]) != _form(two[name]) and _any_tensor(one[name], two[name])]
    values = [name for name in changed if not _any_tensor(one[name], two[name])]
    comparable = [name for name in changed if name in set(tensors) - set(unlike)]
    elements = _element_difference(left, right, comparable)
    only_left, only_right = sorted(one.keys() - two.keys()), sorted(two.keys() - one.keys())
    return TensorDifference(
        tensors=len(tensors),
        tensors_differing=len(set(changed) & set(tensors)),
        elements=sum(math.prod(one[name].shape) for name in tensors if name not in set(unlike)),
        elements_differing=elements.differing,
        largest_absolute=elements.largest_absolute,
        largest_ulp=elements.largest_ulp,
        first_name=min([*changed, *only_left, *only_right], default=""),
        leaves_differing=tuple(values),
        only_left=tuple(only_left),
        only_right=tuple(only_right),
        shape_or_dtype=tuple(unlike),
    )


def _any_tensor(left: Leaf, right: Leaf) -> bool:
    """Tell whether one of two leaves of the same name is a tensor."""
    return left.is_tensor or right.is_tensor


def _form(leaf: Leaf) -> tuple[bool, str, tuple[int, ...]]:
    """Return what must be the same before elements can be compared."""
    return leaf.is_tensor, leaf.dtype, leaf.shape


def _leaves(path: Path, without: frozenset[str]) -> dict[str, Leaf]:
    """Return a checkpoint's leaves by name; raises UsageError when it is not whole."""
    found = examine(path)
    if not found.is_whole:
        raise UsageError(
            f"{path} cannot be compared: {found.reason}", hint="Give two whole checkpoints of formats known here."
        )
    return {leaf.name: leaf for leaf in found.leaves if leaf.name not in without}


def _element_difference(left: Path, right: Path, names: list[str]) -> ElementDifference:
    """Return the differences over the elements of the tensors called `names`, of the same form on both sides."""
    difference = ElementDifference()
    with ExitStack() as stack:
        try:
            one, two = TensorSource(left, stack), TensorSource(right, stack)
            for name in names:
                difference.add(one.tensor(name), two.tensor(name))
        except (DamagedError, UnjudgeableError, KeyError, OSError) as error:
            raise UsageError(f"{left} and {right} changed while they were compared") from error
    return difference

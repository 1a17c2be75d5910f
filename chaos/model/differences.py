"""How two checkpoints differ, bit by bit, part by part: what `chaos diff` shows."""

from __future__ import annotations

from enum import StrEnum

from chaos.model.record import SCHEMA, Record


class DifferenceKind(StrEnum):
    """In which way a leaf differs."""

    ELEMENTS = "elements"
    VALUE = "value"
    FORM = "form"
    ONLY_A = "only_a"
    ONLY_B = "only_b"


class LeafDifference(Record, kw_only=True):
    """One leaf that differs.

    `a` and `b` are for people: the value, or a tensor's dtype and shape; empty on the side where there is none. The
    figures are of tensors with the same dtype and shape; `largest_absolute` is also of those whose dtype alone changed.
    """

    name: str
    kind: DifferenceKind
    a: str = ""
    b: str = ""
    elements: int = 0
    elements_differing: int = 0
    largest_absolute: float = 0.0
    largest_ulp: int = 0


class ComponentDifference(Record, kw_only=True):
    """One part of a checkpoint, such as the weights, on both sides.

    `tensors` and `values` count the names that are there on both sides (a name that is a tensor on one side only is
    among the tensors), `tensors_differing` and `values_differing` those that differ in any way. `elements` are those of
    the tensors with the same dtype and shape on both sides, and `form_changed` counts the others. `largest_absolute` is
    the largest float where a difference is no finite number. `shown` are the first leaves that differ, by name.
    """

    name: str
    is_equal: bool
    tensors: int = 0
    tensors_differing: int = 0
    elements: int = 0
    elements_differing: int = 0
    largest_absolute: float = 0.0
    largest_ulp: int = 0
    values: int = 0
    values_differing: int = 0
    form_changed: int = 0
    only_a: int = 0
    only_b: int = 0
    shown: tuple[LeafDifference, ...] = ()


class CheckpointDifference(Record, kw_only=True):
    """Two whole checkpoints compared: equal in all bits, or which components differ and what that looks like.

    `a` and `b` are the paths, `a_bytes` and `b_bytes` the sizes of the files. `readings` are sentences on the likely
    cause, the most important first. `ignored` counts the leaves that were left out on request, `unmatched` are the
    globs of that request that no name matched.
    """

    schema: int = SCHEMA
    equal: bool
    a: str
    b: str
    a_bytes: int
    b_bytes: int
    components: tuple[ComponentDifference, ...]
    readings: tuple[str, ...] = ()
    ignored: int = 0
    unmatched: tuple[str, ...] = ()

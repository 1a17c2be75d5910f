"""The tensors of one component, in a life and in the reference: which are equal, gone, zero, rounded, another's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

from chaos.model import StepRecord, TensorFacts

Tensors: TypeAlias = Mapping[str, TensorFacts]
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """The names of a component's tensors, sorted by what became of them: each name is in one of these.

    `missing` and `zero` were something in the reference; `initial` are as in the reference's first record; `float16`
    and `bfloat16` are the reference's, rounded; `moved` are those of another name; `other` anything else, those that
    only the life has among them.
    """

    equal: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    initial: tuple[str, ...] = ()
    float16: tuple[str, ...] = ()
    bfloat16: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    other: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """How many tensors there are."""
        return sum(len(getattr(self, field.name)) for field in fields(self))

    @property
    def lost(self) -> tuple[str, ...]:
        """Those that were not restored at all."""
        return self.missing + self.zero + self.initial

    @property
    def rounded(self) -> tuple[str, ...]:
        """Those of lower precision."""
        return self.float16 + self.bfloat16


def sort_tensors(life: Tensors, reference: Tensors, first: Tensors) -> Sorted:
    """Sort the tensors of a component; `first` are those of the reference's first record."""
    names: dict[str, list[str]] = {}
    digests = {facts.digest for facts in reference.values()}
    for name, facts in reference.items():
        names.setdefault(_sort_of(life.get(name), facts, first.get(name), digests), []).append(name)
    names.setdefault("other", []).extend(name for name in life if name not in reference)
    _join_zeros(names, reference, life)
    return Sorted(**{kind: tuple(found) for kind, found in names.items()})


def _sort_of(life: TensorFacts | None, reference: TensorFacts, first: TensorFacts | None, digests: set[str]) -> str:
    """Return the field of `Sorted` that a tensor belongs to."""
    if life is None:
        return "missing"
    if life.digest == reference.digest:
        return "equal"
    if life.is_zero and not reference.is_zero:
        return "zero"
    if life.start in (reference.bfloat16, reference.float16):
        return "bfloat16" if life.start == reference.bfloat16 else "float16"
    if first is not None and life.digest == first.digest:
        return "initial"
    return "moved" if life.digest in digests else "other"


def _join_zeros(names: dict[str, list[str]], reference: Tensors, life: Tensors) -> None:
    """Count zeros as rounded where others are rounded and these came out of the same rounding."""
    for precision in ("float16", "bfloat16"):
        zeros = names.get("zero", [])
        if names.get(precision) and zeros:
            small = [name for name in zeros if life[name].start == getattr(reference[name], precision)]
            names["zero"] = [name for name in zeros if name not in small]
            names[precision] += small


def share_recognized(life: Tensors, reference: Tensors) -> float:
    """Return which share of the life's tensors, 0 to 1, are the reference's, as they are or rounded."""
    sorts = sort_tensors(life, reference, {})
    return (len(sorts.equal) + len(sorts.rounded)) / max(1, sorts.total)


def first_tensors(records: Sequence[StepRecord], component: str) -> Tensors:
    """Return the tensors of the reference's first record."""
    return records[0].details.get(component, {}) if records else {}


def most_alike(life: Tensors, names: Sequence[str], records: Sequence[StepRecord], component: str) -> tuple[int, int]:
    """Return the position of the record that has most of these tensors as they are, and how many it has."""
    best = (0, 0)
    for position, record in enumerate(records):
        there = record.details.get(component, {})
        count = sum(name in there and there[name].digest == life[name].digest for name in names if name in life)
        best = (position, count) if count > best[1] else best
    return best


def some(names: Sequence[str]) -> str:
    """Return the first names, in parentheses after a blank; empty where there are none."""
    if not names:
        return ""
    more = ", …" if len(names) > _MOST_NAMED else ""
    return f" ({', '.join(names[:_MOST_NAMED])}{more})"


def joined(words: Sequence[str]) -> str:
    """Return words as a sentence lists them."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)

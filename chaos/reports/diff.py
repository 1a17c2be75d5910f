"""How two checkpoints differ, for people: the verdict, what it looks like, each component, the first names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TextIO

from chaos.model import CheckpointDifference, ComponentDifference, DifferenceKind, LeafDifference
from chaos.reports.parts import Line, console_on, labelled, print_lines, width_of

_NOTHING = "-"
# The names of leaves are paths joined with dots, and values are what their format's readers make of the text.
_COMPARED = "names and values as they load; not the kinds and the nesting of containers"
_COLUMNS = ("component", "", "tensors", "elements", "largest difference", "in ulp", "values")
# The first columns are words, the others figures.
_NUM_WORDS = 2


def print_difference(difference: CheckpointDifference, stream: TextIO) -> None:
    """Print the whole report to `stream`."""
    console = console_on(stream)
    width = width_of(console)
    print_lines(console, _head(difference, width))
    print_lines(console, _table(difference.components))
    print_lines(console, _names(difference.components))


def _head(difference: CheckpointDifference, width: int) -> Iterator[Line]:
    """Yield what was compared, whether it is equal, and the readings."""
    yield from labelled("A", f"{difference.a} ({difference.a_bytes:,} bytes)", width)
    yield from labelled("B", f"{difference.b} ({difference.b_bytes:,} bytes)", width)
    if difference.ignored:
        yield from labelled("ignored", f"{difference.ignored:,} names, as asked", width)
    yield Line(text="")
    if difference.equal:
        which = "leaf that was not ignored" if difference.ignored else "leaf"
        yield Line(text=f"EQUAL: every bit of every {which} is the same", style="bold green")
        yield from labelled("compared", _COMPARED, width)
    else:
        yield Line(text="DIFFERENT", style="bold red")
    for sentence in difference.readings:
        yield from labelled("reading", f"{sentence}.", width, "bold")


def _table(components: tuple[ComponentDifference, ...]) -> Iterator[Line]:
    """Yield the table of components, as wide as it has to be: a figure that is cut is none."""
    yield Line(text="")
    rows = [_COLUMNS, *((one.name, *_cells(one)) for one in components)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    styles = ["bold", *("" if one.is_equal else "red" for one in components)]
    for row, style in zip(rows, styles, strict=True):
        cells = [
            f"{cell:<{width}}" if place < _NUM_WORDS else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield Line(text=f"  {'  '.join(cells)}".rstrip(), style=style)


def _cells(one: ComponentDifference) -> tuple[str, ...]:
    """Return the cells of one component: whether it is equal, and how many of how many differ."""
    has_figures = bool(one.elements_differing or one.largest_absolute)
    return (
        _verdict(one),
        _of(one.tensors_differing, one.tensors),
        _of(one.elements_differing, one.elements),
        number_in_words(one.largest_absolute) if has_figures else _NOTHING,
        f"{one.largest_ulp:,}" if one.elements_differing and _has_ulp(one) else _NOTHING,
        _of(one.values_differing, one.values),
    )


def _verdict(one: ComponentDifference) -> str:
    """Return in a word or two whether a component is equal."""
    if one.is_equal:
        return "equal"
    is_on_one_side = not one.tensors and not one.values and not (one.only_a and one.only_b)
    return f"only in {'A' if one.only_a else 'B'}" if is_on_one_side else "differs"


def _has_ulp(one: ComponentDifference | LeafDifference) -> bool:
    """Tell whether a distance in ulp says something: integers have none."""
    return bool(one.largest_ulp) or not one.largest_absolute


def _of(differing: int, count: int) -> str:
    """Return how many of how many differ; the number alone where none does."""
    if not count:
        return _NOTHING
    if differing == count > 1:
        return f"all {count:,}"
    return f"{differing:,} of {count:,}" if differing else f"{count:,}"


def number_in_words(value: float) -> str:
    """Return a largest difference; the largest float stands for what is no finite number."""
    return "not finite" if value == sys.float_info.max else f"{value:.6g}"


def _names(components: tuple[ComponentDifference, ...]) -> Iterator[Line]:
    """Yield the first names of each component that differs."""
    for one in components:
        if one.shown:
            yield Line(text="")
            yield Line(text=f"  {one.name}", style="bold")
            for leaf in one.shown:
                yield Line(text=f"    {leaf.name}: {_leaf_in_words(leaf)}")
            more = _num_differing(one) - len(one.shown)
            if more:
                yield Line(text=f"    … and {more:,} more")


def _num_differing(one: ComponentDifference) -> int:
    """Return how many leaves of a component differ in any way."""
    return one.tensors_differing + one.values_differing + one.only_a + one.only_b


def _leaf_in_words(leaf: LeafDifference) -> str:
    """Return how one leaf differs."""
    match leaf.kind:
        case DifferenceKind.ONLY_A:
            return f"only in A ({leaf.a})"
        case DifferenceKind.ONLY_B:
            return f"only in B ({leaf.b})"
        case DifferenceKind.FORM:
            apart = f", largest difference {number_in_words(leaf.largest_absolute)}" if leaf.largest_absolute else ""
            return f"{leaf.a} against {leaf.b}{apart}"
        case DifferenceKind.ELEMENTS if not leaf.a:
            ulp = f" ({leaf.largest_ulp:,} ulp)" if _has_ulp(leaf) else ""
            apart = f"by up to {number_in_words(leaf.largest_absolute)}{ulp}"
            return f"{leaf.elements_differing:,} of {leaf.elements:,} elements differ, {apart}"
    return f"{leaf.a} against {leaf.b}"

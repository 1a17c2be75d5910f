"""What a difference looks like, in sentences: rounded, zeroed, missing, renamed, one bit, a counter. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate

from chaos.checkpoints.components import (
    CHECKSUM,
    GENERATORS,
    OPTIMIZER,
    OPTIMIZER_STEP,
    SETTINGS,
    STEP,
    VALUES,
    WEIGHTS,
    is_of_optimizer,
    key_of,
)
from chaos.checkpoints.pairs import Pair
from chaos.checkpoints.rounding import Guess
from chaos.checkpoints.tally import Tally
from chaos.model import DifferenceKind

MOST_NAMES = 100_000
MOST_TRIES = 8
MOST_MEMBERS = 3
# What torch attaches to a state dict, and no dict made by hand has: versions of modules, no state of the training.
METADATA = re.compile(r"(^|[./])__dict__\._metadata(\.|$)")
PLURAL = frozenset({WEIGHTS, GENERATORS, SETTINGS, VALUES, "averaged weights", "buffers", "other tensors"})
COUNTERS = frozenset({STEP, OPTIMIZER_STEP})
ROUNDED = {
    Guess.RIGHT_FLOAT16: ("B", "A", "float16"),
    Guess.RIGHT_BFLOAT16: ("B", "A", "bfloat16"),
    Guess.RIGHT_FLOAT32: ("B", "A", "float32"),
    Guess.LEFT_FLOAT16: ("A", "B", "float16"),
    Guess.LEFT_BFLOAT16: ("A", "B", "bfloat16"),
    Guess.LEFT_FLOAT32: ("A", "B", "float32"),
}


def readings(tallies: Sequence[Tally]) -> Iterator[str]:
    """Yield the sentences that fit, the most important first; nothing where all is equal or nothing is known.

    What the whole difference is comes first, then component by component in the order of the table.
    """
    # A checksum that the file holds over its own content differs with anything: it says nothing by itself.
    differing = [tally for tally in tallies if not tally.is_equal and tally.name != CHECKSUM]
    if differing:
        has_checksum = any(not tally.is_equal and tally.name == CHECKSUM for tally in tallies)
        yield from _only(differing, has_checksum=has_checksum)
        yield from _one_bit(differing)
        missing = dict(_missing(tallies))
        for tally in tallies:
            if tally.name in missing:
                yield missing[tally.name]
            if tally in differing:
                yield from _zeros(tally)
                yield from _rounded(tally)
                yield from _renamed(tally)


def missing_members(left: AbstractSet[str], right: AbstractSet[str]) -> Iterator[str]:
    """Yield which files of two folders are on one side only, the first of them by name."""
    for has, only in (("A", sorted(left - right)), ("B", sorted(right - left))):
        if only:
            rest = len(only) - MOST_MEMBERS
            names = [*only[:MOST_MEMBERS], *([f"{rest:,} more"] if rest > 0 else [])]
            listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
            yield f"{listed} {'is' if len(only) == 1 else 'are'} only in {has}"


def _only(differing: Sequence[Tally], *, has_checksum: bool) -> Iterator[str]:
    """Say which single component differs, and the counters' values wherever they do."""
    counters = [tally for tally in differing if tally.name in COUNTERS]
    beside = " (and the checksum that the file holds of itself)" if has_checksum else ""
    if len(differing) == 1 or len(counters) == len(differing):
        yield f"only {_subject(differing)}{beside}{_counted(counters)}"
    elif _counted(counters):
        yield f"{_subject(counters)}{_counted(counters)}"
    else:
        yield from (f"{_subject([tally])}{_counted([tally])}" for tally in counters if _counted([tally]))


def _subject(tallies: Sequence[Tally]) -> str:
    """Return components with their verb: one by its name, several counters together."""
    if len(tallies) > 1:
        return "the step counters differ"
    name = tallies[0].name
    return f"the {_named(name)} {'differ' if name in PLURAL else 'differs'}"


def _counted(counters: Sequence[Tally]) -> str:
    """Return the two values of counters that all say the same, nothing for those that do not."""
    values = {(_number(pair.left), _number(pair.right)) for tally in counters for pair in tally.differing}
    if len(values) != 1:
        return ""
    one, two = values.pop()
    return f": {one} against {two}" if one and two else ""


def _number(text: str) -> str:
    """Return a number without a fraction that is none: an optimizer counts in floats."""
    return text.removesuffix(".0")


def _named(component: str) -> str:
    """Return a component's name in a sentence."""
    return f"optimizer's {key_of(component)}" if key_of(component) else component


def _one_bit(differing: Sequence[Tally]) -> Iterator[str]:
    """Say that the whole difference is one bit."""
    found = [pair for tally in differing for pair in tally.differing]
    if len(found) == 1 and found[0].difference is not None:
        only = found[0].difference
        # The bits of a text or of a record are no number's: whoever wrote another letter changed them too.
        is_number = found[0].is_float or only.has_numbers
        if is_number and found[0].kind is DifferenceKind.ELEMENTS and only.differing == only.bits_differing == 1:
            yield f"a single bit differs, of one element of {found[0].name}: what a bit flipped on the disk looks like"


def _missing(tallies: Sequence[Tally]) -> Iterator[tuple[str, str]]:
    """Say of components which are on one side only; the optimizer's are told together, at the first, if all are."""
    for kind, has, lacks in ((DifferenceKind.ONLY_A, "A", "B"), (DifferenceKind.ONLY_B, "B", "A")):
        missing = [tally for tally in tallies if tally.differing and _is_on_one_side(tally, kind)]
        optimizer = [tally for tally in missing if is_of_optimizer(tally.name)]
        # An optimizer that is made anew has its settings, and an empty dict for its state.
        kept = [tally for tally in tallies if is_of_optimizer(tally.name) and tally.name != SETTINGS]
        together = all(tally in missing or _is_empty(tally) for tally in kept)
        if optimizer and together:
            count = sum(len(_solid(tally)) for tally in optimizer)
            yield optimizer[0].name, f"{lacks} has no {OPTIMIZER}: {_leaves(count)} only in {has}"
        for tally in missing:
            if tally not in optimizer or not together:
                yield (
                    tally.name,
                    f"{lacks} has no {_named(tally.name)}: {_leaves(len(_solid(tally)))} only in {has}",
                )


def _leaves(count: int) -> str:
    """Return a number of leaves with its verb."""
    return f"{count:,} {'leaf is' if count == 1 else 'leaves are'}"


def _is_on_one_side(tally: Tally, kind: DifferenceKind) -> bool:
    """Tell whether all of a component is on one side: more than a state dict's metadata and empty containers."""
    found = _solid(tally)
    is_whole = not tally.tensors and not tally.values and all(pair.kind is kind for pair in found)
    return is_whole and not all(METADATA.search(pair.name) for pair in found)


def _solid(tally: Tally) -> list[Pair]:
    """Return what differs, without the containers with nothing in them: they are no state."""
    return [pair for pair in tally.differing if not pair.is_empty]


def _is_empty(tally: Tally) -> bool:
    """Tell whether all there is of a component are containers with nothing in them, on one side."""
    return not tally.tensors and not tally.values and not _solid(tally)


def _zeros(tally: Tally) -> Iterator[str]:
    """Say which side is zero where the other is not."""
    for guess, side in ((Guess.RIGHT_ZERO, "B"), (Guess.LEFT_ZERO, "A")):
        zero = [pair for pair in tally.tensors_differing if guess in pair.guesses]
        if zero and tally.name not in COUNTERS:
            verb = "are" if tally.name in PLURAL else "is"
            yield f"{side}'s {_own(tally)} {verb} all zero (in {len(zero):,} of {_tensors(tally)})"


def _rounded(tally: Tally) -> Iterator[str]:
    """Say that one side is the other one rounded, or the same numbers by another dtype or with other signs of zero."""
    zeros = {Guess.RIGHT_ZERO, Guess.LEFT_ZERO}
    pairs = [pair for pair in tally.tensors_differing if not pair.guesses & zeros]
    if not pairs:
        return
    common = frozenset.intersection(*(pair.guesses for pair in pairs))
    where = f"(in {len(pairs):,} of {_tensors(tally)})"
    is_stored_otherwise = all(pair.kind is DifferenceKind.FORM for pair in pairs)
    verb = "equal" if tally.name in PLURAL else "equals"
    if Guess.SAME_NUMBERS in common:
        what = "the dtype" if is_stored_otherwise else "signs of zeros or payloads of NaNs"
        yield f"no number of the {_named(tally.name)} differs, only {what} {where}"
        return
    for guess, (side, source, precision) in ROUNDED.items():
        if guess in common:
            stored = f" and stored as {precision}" if is_stored_otherwise else ""
            yield f"{side}'s {_own(tally)} {verb} {source}'s rounded to {precision}{stored} {where}"
            return


def _own(tally: Tally) -> str:
    """Return a component's name behind the name of a side."""
    return key_of(tally.name) or tally.name


def _tensors(tally: Tally) -> str:
    """Return how many tensors both sides have."""
    return f"{tally.tensors:,} {'tensor' if tally.tensors == 1 else 'tensors'}"


def _renamed(tally: Tally) -> Iterator[str]:
    """Say that the names of one side are those of the other with something put in, as wrappers of models do."""
    only_a = {pair.name for pair in tally.of_kind(DifferenceKind.ONLY_A)}
    only_b = {pair.name for pair in tally.of_kind(DifferenceKind.ONLY_B)}
    if only_a and len(only_a) == len(only_b) <= MOST_NAMES:
        for short, long, has, lacks in ((only_a, only_b, "B", "A"), (only_b, only_a, "A", "B")):
            put_in = _put_in(short, long)
            if put_in:
                count = f"{len(long):,} {'name' if len(long) == 1 else 'names'}"
                yield f"with `{put_in}` put in, what only {lacks} has is called as what only {has} has ({count})"


def _put_in(short: set[str], long: set[str]) -> str:
    """Return the text that makes each name of `short` one of `long`, put in at the same place; empty for none."""
    extra, rest = divmod(sum(map(len, long)) - sum(map(len, short)), len(short))
    if extra <= 0 or rest:
        return ""
    first = min(short)
    for head in ("", *accumulate(_heads(first))):
        tail = first[len(head) :]
        fitting = (name for name in long if len(name) == len(first) + extra)
        texts = {name[len(head) :][:extra] for name in fitting if name.startswith(head) and name.endswith(tail)}
        for text in sorted(texts)[:MOST_TRIES]:
            if {f"{head}{text}{one[len(head) :]}" for one in short if one.startswith(head)} == long:
                return text
    return ""


def _heads(name: str) -> list[str]:
    """Return the pieces of a name, each with the separator behind it, but for the last."""
    pieces = name.replace("/", "/\0").replace(".", ".\0").split("\0")
    return pieces[:-1]

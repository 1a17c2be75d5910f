"""Where a sequence of batches, or samples, leaves the reference's and goes on with those of another place in it.

Only what the reference saw too is evidence: a batch that it never saw, since it was augmented anew or made by the
model, says nothing, and is passed over. What comes in another order, but as often, is neither seen again nor left out.
None stands for one that nobody saw: it may be anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from chaos.model import Record

# So many places at which the reference saw the same are looked at: those next to where it was expected.
_MOST_CANDIDATES = 64
# So far a place is followed to see whether it is the right one, and so far is as good as any if it never fails.
_LONGEST_RUN = 4096
_ENOUGH = 8
# An order in which each sample comes once in an epoch shows most of them before it shows one again.
_EPOCH_SHARE = 0.8
_MOST_SPREAD = 2


class Shift(Record, kw_only=True):
    """From position `at` of the sequence on, what is seen is the reference's from position `to` on.

    `expected` is the reference's position that would have come next. `run` is how many positions agree. `number` counts
    what is seen again (`to` before `expected`) or left out (after it), up to where the sequence ends.
    """

    at: int
    to: int
    expected: int
    run: int
    number: int

    @property
    def is_back(self) -> bool:
        """Tell whether what was seen before is seen again."""
        return self.to < self.expected


class Walk(Record, kw_only=True):
    """How a sequence goes along the reference: its shifts in order, and where its order was lost (None: nowhere).

    `strays` counts what is the reference's of another place without any shift, `matches` what is seen at its place.
    """

    shifts: tuple[Shift, ...] = ()
    lost_at: int | None = None
    strays: int = 0
    matches: int = 0


class Needed(Record, kw_only=True):
    """So many agreeing positions are needed to speak of something seen again, and of something left out."""

    again: int
    left_out: int


def walk(seen: Sequence[Hashable], reference: Sequence[Hashable], needed: Needed, *, ends_at_loss: bool) -> Walk:
    """Follow `seen` along `reference`; with `ends_at_loss` up to where it has no order of the reference any more."""
    places = _places(reference)
    shifts: list[Shift] = []
    offset = position = strays = matches = 0
    since = 0  # what comes after the last agreement may have been shifted already
    while position < len(seen) and position + offset < len(reference):
        here = seen[position]
        wanted = reference[position + offset]
        if here == wanted or wanted is None or here not in places:
            position += 1
            if here is not None and here == wanted:
                matches += 1
                since = position
            continue
        found = _shift(seen, reference, places, position, position + offset)
        if found.run < (needed.again if found.is_back else needed.left_out):
            if ends_at_loss:
                return Walk(shifts=tuple(shifts), lost_at=position, matches=matches)
            strays += 1
            position += 1
            continue
        shifts.append(_from_its_beginning(found, seen, reference, since))
        offset = found.to - found.at
    return Walk(shifts=tuple(shifts), strays=strays, matches=matches)


def is_borne_out(shift: Shift, seen: Sequence[Hashable], reference: Sequence[Hashable]) -> bool:
    """Tell whether something is really seen more often, or less often, than in the reference by the same end.

    What nobody saw may be any of them, but in a reference that shows nothing twice.
    """
    counts, wanted = Counter(seen), Counter(reference[: len(seen)])
    unseen = (counts.pop(None, 0), wanted.pop(None, 0))
    has_repeated = any(count > 1 for item, count in Counter(reference).items() if item is not None)
    hidden, wanted_hidden = unseen if has_repeated else (0, 0)
    if shift.is_back:
        again = set(seen[shift.at : shift.at + shift.number]) - {None}
        return any(counts[item] > wanted[item] + wanted_hidden for item in again)
    left_out = set(reference[shift.expected : shift.to]) - {None}
    return any(counts[item] + hidden < wanted[item] for item in left_out)


def more_and_less_often(seen: Sequence[int], reference: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the samples that are seen more often, and less often, than any order by epochs would show them by then.

    Nothing is returned where the reference itself does not go by epochs, in which every sample comes once.
    """
    number = min(len(seen), len(reference))
    counts, wanted = Counter(seen[:number]), Counter(reference[:number])
    if not wanted or not _goes_by_epochs(reference):
        return (), ()
    most = max(wanted.values())
    least = 0 if counts.keys() - wanted.keys() else min(wanted.values())
    again = tuple(item for item in counts if counts[item] > most)
    if again:
        least = max(least, 1)  # they have taken the places of samples that are never seen
    return again, tuple(item for item in wanted if counts[item] < least)


def _places(reference: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    places: dict[Hashable, list[int]] = {}
    for position, item in enumerate(reference):
        if item is not None:
            places.setdefault(item, []).append(position)
    return places


class _Run(Record, kw_only=True):
    """How many positions agree from a place on, and whether that goes on until one of the two ends."""

    count: int
    is_unbroken: bool


def _shift(
    seen: Sequence[Hashable],
    reference: Sequence[Hashable],
    places: Mapping[Hashable, Sequence[int]],
    at: int,
    expected: int,
) -> Shift:
    """Return the place that the sequence went on from: the one it agrees with longest."""
    nearest = sorted(places[seen[at]], key=lambda place: abs(place - expected))[:_MOST_CANDIDATES]
    runs = {place: _run(seen, reference, places, at, place) for place in nearest}
    longest = max(run.count for run in runs.values())
    enough = min(longest, _ENOUGH)
    likely = [place for place in nearest if runs[place].is_unbroken and runs[place].count >= enough]
    likely = likely or [place for place in nearest if runs[place].count == longest]
    if seen[at] == reference[0]:
        # In an order that is the same in each epoch the next epoch's start looks like this one's: it began anew.
        likely = [place for place in likely if place < expected] or likely
    return _shift_at(at, likely[0] - at, expected - at, runs[likely[0]].count, len(seen))


def _shift_at(at: int, offset: int, before: int, run: int, length: int) -> Shift:
    """Return the shift from the offset `before` to `offset`, at a position of a sequence so long."""
    number = min(before - offset, length - at) if offset < before else offset - before
    return Shift(at=at, to=at + offset, expected=at + before, run=run, number=number)


def _from_its_beginning(found: Shift, seen: Sequence[Hashable], reference: Sequence[Hashable], since: int) -> Shift:
    """Return a shift from where it must have begun: before it may be positions of the reference that nobody saw."""
    offset, before = found.to - found.at, found.expected - found.at
    begin = found.at
    for position in range(found.at - 1, max(since, -offset) - 1, -1):
        here, there = seen[position], reference[position + offset]
        if here is not None and there is not None and here != there:
            break
        if None not in (here, reference[position + before]):
            begin = position  # it was given something else than was due here
    return _shift_at(begin, offset, before, found.run, len(seen))


def _run(
    seen: Sequence[Hashable],
    reference: Sequence[Hashable],
    places: Mapping[Hashable, Sequence[int]],
    at: int,
    place: int,
) -> _Run:
    """Count the positions that agree until one contradicts; what the reference never saw contradicts nothing."""
    count = 0
    for ahead in range(min(len(seen) - at, len(reference) - place, _LONGEST_RUN)):
        here = seen[at + ahead]
        if here == reference[place + ahead]:
            count += 1
        elif here in places and reference[place + ahead] is not None:
            return _Run(count=count, is_unbroken=False)
    return _Run(count=count, is_unbroken=True)


def _goes_by_epochs(reference: Sequence[int]) -> bool:
    """Tell whether the reference shows most samples before it shows any again, and all about equally often."""
    seen: set[int] = set()
    for item in reference:
        if item in seen:
            break
        seen.add(item)
    counts = Counter(reference)
    return len(seen) >= _EPOCH_SHARE * len(counts) and max(counts.values()) - min(counts.values()) <= _MOST_SPREAD

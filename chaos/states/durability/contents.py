"""The bytes of a file that a loss of power may leave: any set of its pages, and a length in between.

What was synced is there. Of what was written since, each page may be as it was at any moment since (a page is written
out whenever the kernel likes), and the length may be any that the file had or grew through. Source: delayed allocation
and writeback as described in Documentation/filesystems/ext4 and measured: 0 bytes, a part, and full lengths with zeros
were all seen.

A cut, or a range made zeros, is a change of metadata: what the rules of names keep or lose. That holds for whole pages
alone; the page in which it begins or ends is written as late as any other (measured: a file of 3000 new bytes that was
cut to 1500, the cut kept, held zeros on ext4; 500 bytes made zeros were back on XFS while what came later was there).
Where one is lost, what was written later into pages that the file kept may be there all the same. A kept one makes the
length durable if it is what changed the length; bytes that were appended before a hole was made were still lost
(measured: ext4, XFS, btrfs).
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from chaos.model import PAGE_BYTES
from chaos.states.changes import Allocated, Zeroed
from chaos.states.durability.written import Choice, ContentEvent, FileLog, Lanes, Run, lanes_of, num_pages

Positions = npt.NDArray[np.int64]
_STRIPES: Final = 8


@dataclass(slots=True, kw_only=True)
class Floor:
    """What of a file is durable by one file system's rules.

    `pages` holds for each page the position up to which it is durable; `size` the same for the length. `spoilt` are
    the pages whose writing failed in an fsync: the kernel takes them for clean, so that a later fsync that succeeds
    proves nothing for them, unless they were written again.
    """

    log: FileLog
    pages: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    spoilt: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    size: int = field(init=False)
    _seen: int = 0
    _known: dict[int, Outcomes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with all that was there before the log durable."""
        self.size = self.log.start

    def _grow(self) -> None:
        """Make room for the pages that the file has; what was written again is not spoilt any more."""
        wanted = self.log.most_pages()
        if wanted > len(self.pages):
            missing = wanted - len(self.pages)
            self.pages = np.concatenate([self.pages, np.full(missing, self.log.start, np.int64)])
            self.spoilt = np.concatenate([self.spoilt, np.zeros(missing, np.bool_)])
        if self._seen < len(self.log.events):
            self._known.clear()
        for event in self.log.events[self._seen :]:
            self.spoilt[event.first : event.end] = False
        self._seen = len(self.log.events)

    def keep(self, position: int, first: int = 0, end: int | None = None) -> None:
        """Take it that the file, or its pages from `first` to `end`, are durable as they are at a position."""
        self._grow()
        self._known.clear()
        chosen = self.pages[first:end]
        chosen[~self.spoilt[first:end]] = position
        if end is None or self.log.size_at(position) <= end * PAGE_BYTES:
            self.size = position

    def spoil(self) -> None:
        """Take it that an fsync has failed: what was not durable by then counts as clean, and may never be written."""
        self._grow()
        for event in self.log.events:
            span = slice(event.first, event.end)
            self.spoilt[span] |= self.pages[span] < event.position

    @property
    def is_settled(self) -> bool:
        """Tell whether nothing of the file can come out otherwise."""
        self._grow()
        return bool(self.size >= self.log.last and (self.pages >= self.log.last).all())

    # --- what may be left -----------------------------------------------------------------------------

    def outcomes(self, limit: int | None) -> Outcomes:
        """Return what may be left where the file's changes of metadata after position `limit` are lost (None: none)."""
        self._grow()
        lost = [e.position for e in self.log.events if e.is_metadata and limit is not None and e.position > limit]
        # What the file itself was synced with is there, whatever the order of names says.
        end = min((position for position in lost if position > self.size), default=self.log.last + 1)
        if end not in self._known:
            self._known[end] = Outcomes(self, end)
        return self._known[end]

    def limits(self) -> list[int]:
        """Return the positions up to which changes of metadata may have come to the disk, where they are free."""
        free = [event.position for event in self.log.events if event.is_metadata and event.position > self.size]
        return [self.size, *free]


class Outcomes:
    """What may be left of one file, with its changes from position `end` on lost."""

    def __init__(self, floor: Floor, end: int) -> None:
        """Work out from when on each page and the length are open."""
        self._log = floor.log
        self._events = [event for event in floor.log.events if event.position < end]
        self._last = self._events[-1].position if self._events else floor.log.start
        self._oldest_lanes: Lanes | None = None
        self._from = floor.pages.copy()
        self._size_from = floor.size
        for event in self._events:
            span = slice(*event.whole)
            self._from[span] = np.maximum(self._from[span], event.position)
            if event.sets_length:
                self._size_from = max(self._size_from, event.position)
        self._spans = [
            *_spans(self._events),
            *_spans_after_loss(floor.log.events[len(self._events) :], len(self._from)),
        ]

    @cached_property
    def is_open(self) -> bool:
        """Tell whether there is more than one."""
        return bool(self._open_pages()) or len(self._sizes(limit=1)) > 1

    def _open_pages(self) -> list[int]:
        """Return the pages that were written since they were durable."""
        is_open = np.zeros(len(self._from), np.bool_)
        for event, span in self._spans:
            is_open[span] |= self._from[span] < event.position
        return [int(page) for page in np.flatnonzero(is_open)]

    def _versions(self, page: int) -> list[int]:
        """Return the positions whose bytes a page may have, the durable ones first, each bytes once."""
        start = int(self._from[page])
        versions = {self._floor_lanes()[page].tobytes(): start}
        for event, span in self._spans:
            if event.position > start and span.start <= page < span.stop:
                versions.setdefault(event.lanes[page - event.first].tobytes(), event.position)
        return list(versions.values())

    def _sizes(self, limit: int | None = None) -> list[int]:
        """Return the lengths that may be left: the durable one first, then the newest, then those between."""
        first, *later = self._told_sizes()
        sizes = [first, *later]
        between = range((first // PAGE_BYTES + 1) * PAGE_BYTES, max(sizes), PAGE_BYTES)
        ordered = dict.fromkeys([first, sizes[-1], *sizes, *itertools.islice(between, limit)])
        return list(ordered)

    def _told_sizes(self) -> list[int]:
        """Return the durable length, and those that changes have told of since, the newest last."""
        sizes = [self._log.size_at(self._size_from)]
        for event in self._events:
            if event.position > self._size_from:
                if isinstance(event.change, Zeroed | Allocated):  # ext4 lets the length that is on the disk grow so far
                    end = min(event.change.offset + event.change.length_bytes, event.size_bytes)
                    sizes += [end] if end > sizes[0] else []
                sizes.append(event.size_bytes)
        return sizes

    # --- enumerated -------------------------------------------------------------------------------------

    def count(self) -> int:
        """Return how many outcomes there are, those of equal bytes once for each way to come about."""
        ways = self._ways()
        products = list(itertools.accumulate((int(number) for number in ways), operator.mul, initial=1))
        return sum(products[min(num_pages(size), len(ways))] for size in self._sizes())

    def is_at_most(self, number: int) -> bool:
        """Tell whether there are no more outcomes than `number`, as far as that is quickly told."""
        return float(np.log2(self._ways()).sum()) + math.log2(len(self._sizes(limit=number))) <= math.log2(number)

    def _ways(self) -> npt.NDArray[np.int64]:
        """Return for each page of how many moments its bytes may be."""
        ways = np.ones(len(self._from), np.int64)
        for event, span in self._spans:
            ways[span] += self._from[span] < event.position
        return ways

    @cached_property
    def everything(self) -> Choice:
        """Return the outcome in which nothing is lost but what `end` says."""
        return Choice(self._log.size_at(self._last), tuple(self._clamped(self._last)))

    @cached_property
    def corners(self) -> list[Choice]:
        """Return the outcomes that hurt, the one with everything first.

        Nothing of what was written since; the full length without its bytes; the first half alone, with and without
        the length; the second half alone; all but the first page, all but the last; every other stripe; what there was
        at moments in between.
        """
        oldest, newest = self._oldest(), self._clamped(self._last)
        durable, full = self._log.size_at(self._size_from), self._log.size_at(self._last)
        pages = num_pages(full)
        half = max(pages // 2, 1)
        chosen = [
            self.everything,
            Choice(durable, tuple(oldest)),
            Choice(full, tuple(oldest)),
            Choice(full, _joined(newest, oldest, half)),
        ]
        if durable < half * PAGE_BYTES < full:
            chosen.append(Choice(half * PAGE_BYTES, tuple(newest)))
        chosen.append(Choice(full, _joined(oldest, newest, half)))
        chosen.append(Choice(full, _joined(oldest, newest, 1)))
        chosen.append(Choice(full, _joined(newest, oldest, max(pages - 1, 0))))
        chosen.append(Choice(full, self._striped(oldest, newest, pages)))
        later = [
            event
            for event in self._events[:-1]
            if event.position > max(self._size_from, int(self._from.min(initial=0)))
        ]
        between = dict.fromkeys(later[index].position for index in (len(later) // 4, len(later) // 2, -1) if later)
        return [*chosen, *(Choice(self._log.size_at(at), tuple(self._clamped(at))) for at in between)]

    def _oldest(self) -> list[Run]:
        """Return the runs of the durable bytes."""
        return _runs(self._from)

    def _clamped(self, position: int) -> list[Run]:
        """Return the runs of the bytes at a moment, but never older than what is durable."""
        return _runs(np.maximum(self._from, position))

    def _striped(self, oldest: list[Run], newest: list[Run], pages: int) -> tuple[Run, ...]:
        """Return runs that change between old and new a few times."""
        width = max(pages // _STRIPES, 1)
        runs: list[Run] = []
        for number, start in enumerate(range(0, len(self._from), width)):
            runs += _part(newest if number % 2 else oldest, start, min(start + width, len(self._from)))
        return tuple(runs)

    def all(self) -> Iterator[Choice]:
        """Yield every outcome, the corners first, some more than once."""
        yield from self.corners
        open_pages = set(self._open_pages())
        for size in self._sizes():
            pages = range(num_pages(size))
            options = [self._versions(p) if p in open_pages else [int(self._from[p])] for p in pages]
            for versions in itertools.product(*options):
                yield Choice(size, tuple(_runs(np.array(versions, np.int64))))

    # --- asked ------------------------------------------------------------------------------------------

    def allow(self, data: bytes) -> bool:
        """Tell whether a file with these bytes may be left."""
        size = len(data)
        if not self._is_size(size):
            return False
        seen = lanes_of(data)
        whole = size // PAGE_BYTES
        fits = (self._floor_lanes()[:whole] == seen[:whole]).all(axis=1)
        for event, pages in self._spans:
            span = slice(pages.start, min(pages.stop, whole))
            if span.start < span.stop:
                lanes = event.lanes[span.start - event.first : span.stop - event.first]
                fits[span] |= (lanes == seen[span]).all(axis=1) & (self._from[span] < event.position)
        return bool(fits.all()) and (whole * PAGE_BYTES == size or self._allows_tail(whole, data[whole * PAGE_BYTES :]))

    def _is_size(self, size: int) -> bool:
        """Tell whether a length may be left."""
        first, *later = self._told_sizes()
        return size in {first, *later} or (size % PAGE_BYTES == 0 and first < size <= max([first, *later]))

    def _floor_lanes(self) -> Lanes:
        """Return the digests of the durable pages."""
        if self._oldest_lanes is None:
            lanes = np.zeros((len(self._from), 2), np.uint64)
            for position in {position for _, _, position in self._oldest()}:
                mine = self._from == position
                lanes[mine] = self._log.lanes_at(position)[: len(lanes)][mine]
            self._oldest_lanes = lanes
        return self._oldest_lanes

    def _allows_tail(self, page: int, tail: bytes) -> bool:
        """Tell whether the last page, cut by the length, may hold these bytes."""
        start, end = page * PAGE_BYTES, page * PAGE_BYTES + len(tail)
        versions = self._versions(page) if page < len(self._from) else []
        return any(self._log.extents_at(p).read(start, end, self._log.content) == tail for p in versions)


Span = tuple[ContentEvent, slice]


def _spans(events: Iterable[ContentEvent]) -> Iterator[Span]:
    """Yield changes with the pages in which they altered bytes."""
    return ((event, slice(event.first, event.end)) for event in events)


def _spans_after_loss(events: Iterable[ContentEvent], pages: int) -> Iterator[Span]:
    """Yield the changes from a lost one of metadata on, with the pages whose new bytes may be on the disk all the same.

    A page that the file keeps is written over in place, which needs no metadata: cut to half, written over, and found
    at its full length with the new first half (ext4 and XFS; measured). What was taken from the file was given new
    room, of which only metadata tells.
    """
    is_there = np.ones(pages, np.bool_)
    for event in events:
        is_there[slice(*event.whole)] = False
        edges = np.flatnonzero(np.diff(is_there[event.first : event.end], prepend=False, append=False))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            yield event, slice(event.first + int(start), event.first + int(stop))


def _runs(positions: Positions) -> list[Run]:
    """Return the runs of pages with equal positions."""
    if not len(positions):
        return []
    starts = [0, *(int(page) + 1 for page in np.flatnonzero(positions[1:] != positions[:-1]))]
    return [
        (start, end, int(positions[start])) for start, end in zip(starts, [*starts[1:], len(positions)], strict=True)
    ]


def _part(runs: list[Run], start: int, end: int) -> list[Run]:
    """Return the part of runs from one page to another."""
    cut = ((max(first, start), min(stop, end), position) for first, stop, position in runs)
    return [run for run in cut if run[0] < run[1]]


def _joined(left: list[Run], right: list[Run], page: int) -> tuple[Run, ...]:
    """Return the runs of one up to a page, and of another from there on."""
    end = max([page, *(stop for _, stop, _ in right)])
    return (*_part(left, 0, page), *_part(right, page, end))

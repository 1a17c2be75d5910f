"""What happened to the bytes of one file, change by change, with digests of its pages at every moment.

A digest costs what was changed: each change keeps those of the pages that it touched, and running sums give that of any
mixture of moments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

from chaos.model import PAGE_BYTES
from chaos.states.changes import Allocated, Resized, Wrote, Zeroed
from chaos.states.content import Content
from chaos.states.extents import Extents

Lanes = npt.NDArray[np.uint64]
_CACHED: Final = 12
_ZEROS: Final = bytes(PAGE_BYTES)
_NO_LANES: Final = bytes(16)


ContentChange = Wrote | Resized | Allocated | Zeroed


def touched(change: ContentChange, old_size: int) -> tuple[int, int]:
    """Return the file offsets between which a change may alter bytes."""
    match change:
        case Wrote():
            return change.offset, change.end
        case Zeroed():
            return change.offset, change.offset + change.length_bytes
        case Resized() if change.size_bytes < old_size:
            return change.size_bytes, old_size
        case _:
            return 0, 0


def num_pages(size_bytes: int) -> int:
    """Return how many pages a length takes."""
    return -(-size_bytes // PAGE_BYTES)


def whole_pages(change: ContentChange, old_size: int) -> tuple[int, int]:
    """Return the first and the end of the pages that a change of metadata takes from the file.

    Of a page that is cut in the middle, bytes are made zeros: that is written like any other bytes, and as late.
    """
    start, end = touched(change, old_size)
    match change:
        case Resized():
            return num_pages(start), num_pages(end)
        case Zeroed():
            return num_pages(start), max(end // PAGE_BYTES, num_pages(start))
        case _:
            return 0, 0


def page_lanes(number: int, page: bytes) -> bytes:
    """Return the digest of one page, seeded with its number; a page of zeros counts nothing."""
    page = page.ljust(PAGE_BYTES, b"\0")
    return _NO_LANES if page == _ZEROS else xxhash.xxh3_128_digest(page, number)


def lanes_of(data: bytes, first: int = 0) -> Lanes:
    """Return the digests of the pages in `data`, which begins with page `first`, as two lanes of 64 bits each."""
    pages = (data[start : start + PAGE_BYTES] for start in range(0, len(data), PAGE_BYTES))
    joined = b"".join(page_lanes(first + number, page) for number, page in enumerate(pages))
    return np.frombuffer(joined, np.uint64).reshape(-1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentEvent:
    """A change of a file's bytes or length; `lanes` are the digests of its pages, from page `first`, after it.

    `whole` are the first and the end of the pages that it took from the file; `sets_length`: as metadata, and to
    another one.
    """

    position: int
    change: ContentChange
    is_metadata: bool
    sets_length: bool
    first: int
    whole: tuple[int, int]
    lanes: Lanes
    size_bytes: int

    @property
    def end(self) -> int:
        """Return the page after the last one that it touched."""
        return self.first + len(self.lanes)


Run = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Choice:
    """One outcome for a file: its length, and of which moments its pages are: (first page, end, position)."""

    size_bytes: int
    runs: tuple[Run, ...]


@dataclass(slots=True, kw_only=True)
class FileLog:
    """What happened to the bytes of one file, whatever the rules: its state after change `start`, and changes since."""

    node: int
    start: int
    content: Content
    before: Extents = field(default_factory=Extents)
    base: Lanes = field(default_factory=lambda: np.zeros((0, 2), np.uint64))
    events: list[ContentEvent] = field(default_factory=list)
    _sums: OrderedDict[int, Lanes] = field(default_factory=OrderedDict)
    _digests: dict[Choice, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, node: int, start: int, extents: Extents, content: Content) -> FileLog:
        """Begin with a file as it is, after change `start`."""
        data = extents.read(0, extents.size, content)
        return cls(node=node, start=start, content=content, before=extents.copy(), base=lanes_of(data))

    def add(self, position: int, change: ContentChange, old_size: int, extents: Extents) -> None:
        """Take a change; `extents` is the file after it, `old_size` its length before."""
        start, end = touched(change, old_size)
        first, last = start // PAGE_BYTES, num_pages(end)
        data = extents.read(first * PAGE_BYTES, last * PAGE_BYTES, self.content)
        is_metadata = not isinstance(change, Wrote)
        event = ContentEvent(
            position=position,
            change=change,
            is_metadata=is_metadata,
            sets_length=is_metadata and extents.size != old_size,
            first=first,
            whole=whole_pages(change, old_size),
            lanes=lanes_of(data, first),
            size_bytes=extents.size,
        )
        self.events.append(event)
        self._digests.clear()

    def extents_at(self, position: int) -> Extents:
        """Return the bytes after the changes up to a position."""
        extents = self.before.copy()
        for event in self.events:
            if event.position > position:
                break
            extents.apply(event.change)
        return extents

    @property
    def last(self) -> int:
        """Return the position of the newest change."""
        return self.events[-1].position if self.events else self.start

    def size_at(self, position: int) -> int:
        """Return the length after the changes up to a position."""
        number = bisect_left(self.events, position + 1, key=lambda event: event.position)
        return self.events[number - 1].size_bytes if number else self.before.size

    def most_pages(self) -> int:
        """Return the number of pages that the file ever had."""
        return max([len(self.base), num_pages(self.before.size), *(num_pages(e.size_bytes) for e in self.events)])

    def lanes_at(self, position: int) -> Lanes:
        """Return the digests of all pages after the changes up to a position."""
        lanes = np.zeros((max([self.most_pages(), *(e.end for e in self.events)], default=0), 2), np.uint64)
        lanes[: len(self.base)] = self.base
        for event in self.events:
            if event.position > position:
                break
            lanes[event.first : event.end] = event.lanes
        return lanes

    def sums_at(self, position: int) -> Lanes:
        """Return the running sums of `lanes_at`: entry n is the sum of the first n pages."""
        known = self._sums.get(position)
        if known is None or len(known) <= self.most_pages():
            lanes = self.lanes_at(position)
            known = np.zeros((len(lanes) + 1, 2), np.uint64)
            np.cumsum(lanes, axis=0, dtype=np.uint64, out=known[1:])
            self._sums[position] = known
            if len(self._sums) > _CACHED:
                self._sums.popitem(last=False)
        return known

    def digest(self, choice: Choice) -> bytes:
        """Return a digest of the length and bytes of an outcome: equal ones have equal digests."""
        known = self._digests.get(choice)
        if known is None:
            known = self._digests[choice] = self._digest(choice)
        return known

    def _digest(self, choice: Choice) -> bytes:
        """Work the digest of an outcome out from the running sums of the moments that it mixes."""
        tail = self._tail(choice)
        whole = num_pages(choice.size_bytes) if tail is None else choice.size_bytes // PAGE_BYTES
        total = np.zeros(2, np.uint64)
        for first, end, position in choice.runs:
            sums = self.sums_at(position)
            stop = min(end, whole)
            if first < stop:
                total += sums[min(stop, len(sums) - 1)] - sums[min(first, len(sums) - 1)]
        if tail is not None:
            total += np.frombuffer(page_lanes(whole, tail), np.uint64)
        return choice.size_bytes.to_bytes(8, "little") + total.tobytes()

    def _tail(self, choice: Choice) -> bytes | None:
        """Return the bytes of the last page where the length cuts it shorter than it was (None: it does not)."""
        page = choice.size_bytes // PAGE_BYTES
        position = next((run[2] for run in choice.runs if run[0] <= page < run[1]), None)
        if choice.size_bytes % PAGE_BYTES == 0 or position is None or self.size_at(position) <= choice.size_bytes:
            return None
        return self.extents_at(position).read(page * PAGE_BYTES, choice.size_bytes, self.content)

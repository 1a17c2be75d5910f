"""The content of one file as extents: which pieces lie where; what none covers is a hole, which reads as zeros."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chaos.states.changes import Allocated, Resized, Wrote, Zeroed
from chaos.states.content import Content, Piece
from chaos.states.pages import Pages


class Extent(NamedTuple):
    """The bytes of a file from `start` to `end`: those of a piece from its byte `skip` on."""

    start: int
    end: int
    digest: str
    skip: int


class Extents:
    """A file's length and its extents, which never overlap, in order."""

    def __init__(self) -> None:
        """Begin empty."""
        self.size = 0
        self._starts: list[int] = []
        self._extents: list[Extent] = []
        self._pages: Pages | None = None

    def copy(self) -> Extents:
        """Return the same content, to be changed apart."""
        other = Extents()
        other.size = self.size
        other._starts, other._extents = self._starts.copy(), self._extents.copy()
        return other

    def __iter__(self) -> Iterator[Extent]:
        """Go through the extents in order."""
        return iter(self._extents)

    def apply(self, change: Wrote | Resized | Allocated | Zeroed, *, start: int = 0, end: int | None = None) -> None:
        """Do what a change of bytes or length tells; of written bytes only those from offset `start` to `end`."""
        match change:
            case Wrote():
                self.write(change.offset, change.pieces, start, change.end if end is None else end)
            case Zeroed():
                self.zero(change.offset, change.offset + change.length_bytes)
                self.resize(change.size_bytes)
            case _:
                self.resize(change.size_bytes)

    def take(self, other: Extents, start: int, end: int) -> None:
        """Take over the bytes of another file from `start` to `end`; the length grows as far as there are any."""
        self._clear(start, end)
        for extent in other:
            first, last = max(extent.start, start), min(extent.end, end)
            if first < last:
                self._put(Extent(first, last, extent.digest, extent.skip + first - extent.start))

    def write(self, offset: int, pieces: Iterable[Piece], start: int, end: int) -> None:
        """Put `pieces` at `offset`, but no more of them than lies from `start` to `end`."""
        for piece in pieces:
            first, last = max(offset, start), min(offset + piece.size_bytes, end)
            if first < last:
                self._put(Extent(first, last, piece.digest, first - offset))
            offset += piece.size_bytes

    def _put(self, extent: Extent) -> None:
        """Lay one extent over what is there."""
        position = self._clear(extent.start, extent.end)
        self._starts.insert(position, extent.start)
        self._extents.insert(position, extent)
        self.size = max(self.size, extent.end)
        self._touch(extent.start, extent.end)

    def zero(self, start: int, end: int) -> None:
        """Make a hole; the length stays."""
        self._clear(start, end)
        self._touch(start, end)

    def resize(self, size: int) -> None:
        """Cut the file, or let it grow by a hole."""
        if size < self.size:
            self._clear(size, self.size)
            if self._pages is not None:
                self._pages.shrink(size)
        self.size = size

    def _clear(self, start: int, end: int) -> int:
        """Take a range out of the extents; return where in the list one that begins at `start` belongs."""
        first, last = bisect_right(self._starts, start), bisect_left(self._starts, end)
        if first and self._extents[first - 1].end > start:
            first -= 1
        kept, position = [], first
        if first < last:
            left, right = self._extents[first], self._extents[last - 1]
            if left.start < start:
                kept.append(left._replace(end=start))
                position += 1
            if right.end > end:
                kept.append(right._replace(start=end, skip=right.skip + end - right.start))
        self._extents[first:last] = kept
        self._starts[first:last] = [extent.start for extent in kept]
        return position

    def read(self, start: int, end: int, content: Content) -> bytes:
        """Return the bytes from `start` to `end`; zeros where the file has none."""
        data = bytearray(end - start)
        position = max(bisect_right(self._starts, start) - 1, 0)
        for extent in self._extents[position : bisect_left(self._starts, end)]:
            first, last = max(extent.start, start), min(extent.end, end)
            if first < last:
                skip = extent.skip + first - extent.start
                data[first - start : last - start] = content.read(extent.digest)[skip : skip + last - first]
        return bytes(data)

    def digest(self, content: Content) -> bytes:
        """Return a digest of length and bytes; only what was changed since the last time is read."""
        if self._pages is None:
            self._pages = Pages()
            for extent in self._extents:
                self._pages.touch(extent.start, extent.end)
        total = self._pages.update(self.size, lambda start, end: self.read(start, end, content))
        return self.size.to_bytes(8, "little") + total

    def _touch(self, start: int, end: int) -> None:
        """Note that bytes changed, for the digest."""
        if self._pages is not None:
            self._pages.touch(start, end)

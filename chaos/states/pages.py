"""A digest of a file's bytes that is kept up to date: a change costs what it changed, however large the file.

Each page has a digest of its own, seeded with its number; the file's is their sum. A page of zeros counts nothing, so
that a hole equals written zeros, and the last page is filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

from chaos.model import PAGE_BYTES

_ZEROS: Final = bytes(PAGE_BYTES)
_NOTHING: Final = bytes(16)
_CHUNK_PAGES: Final = 256

Lanes = npt.NDArray[np.uint64]


class Pages:
    """The digests of a file's pages as two lanes of 64 bits, and their sums (modulo 2**64)."""

    def __init__(self) -> None:
        """Begin with a file of zeros."""
        self._lanes: Lanes = np.zeros((0, 2), np.uint64)
        self._total: Lanes = np.zeros(2, np.uint64)
        self._touched: list[tuple[int, int]] = []

    def touch(self, start: int, end: int) -> None:
        """Note that the bytes from `start` to `end` are others now."""
        if start < end:
            self._touched.append((start // PAGE_BYTES, (end - 1) // PAGE_BYTES + 1))

    def shrink(self, size: int) -> None:
        """Note that the file was cut to `size` bytes: what comes after them is zeros."""
        num_pages = -(-size // PAGE_BYTES)
        tail = self._lanes[num_pages:]
        self._total -= tail.sum(axis=0, dtype=np.uint64)
        tail[:] = 0
        self.touch(size // PAGE_BYTES * PAGE_BYTES, size)

    def update(self, size: int, read: Callable[[int, int], bytes]) -> bytes:
        """Return the sum after reading the touched pages through `read` (from offset, to offset: filled with zeros)."""
        num_pages = -(-size // PAGE_BYTES)
        if num_pages > len(self._lanes):
            room = np.zeros((max(num_pages, 2 * len(self._lanes)), 2), np.uint64)
            room[: len(self._lanes)] = self._lanes
            self._lanes = room
        for first, last in self._merged(num_pages):
            for start in range(first, last, _CHUNK_PAGES):
                end = min(start + _CHUNK_PAGES, last)
                self._replace(start, end, read(start * PAGE_BYTES, end * PAGE_BYTES))
        self._touched.clear()
        return self._total.tobytes()

    def _merged(self, num_pages: int) -> Iterator[tuple[int, int]]:
        """Yield the touched ranges of pages once each, none beyond the file's end."""
        start = end = 0
        for first, last in sorted(self._touched):
            if first > end:
                yield start, min(end, num_pages)
                start, end = first, last
            end = max(end, last)
        yield start, min(end, num_pages)

    def _replace(self, first: int, last: int, data: bytes) -> None:
        """Put the digests of `data`, the pages from `first` to `last`, in the place of the old ones."""
        digests = []
        for number in range(last - first):
            page = data[number * PAGE_BYTES : (number + 1) * PAGE_BYTES]
            digests.append(_NOTHING if page == _ZEROS else xxhash.xxh3_128_digest(page, first + number))
        lanes = np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)
        self._total += lanes.sum(axis=0, dtype=np.uint64) - self._lanes[first:last].sum(axis=0, dtype=np.uint64)
        self._lanes[first:last] = lanes

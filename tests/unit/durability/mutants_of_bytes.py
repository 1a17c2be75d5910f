"""Mutants of the bytes: pages, lengths, what is spoilt, durable writes, cuts and holes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from chaos.states.durability import contents, history, rules, written
from chaos.states.durability.contents import Floor, Outcomes
from chaos.states.durability.history import History

from .mutants import BTRFS, EXT4, POSIX, XFS, Apply, Mutant, nothing, replaced


def _never_spoilt(self: Floor) -> None:
    """Let a failed fsync spoil nothing."""


_grow = Floor._grow


def _grow_without_cure(self: Floor) -> None:
    """Let what was written again stay spoilt."""
    spoilt = self.spoilt.copy()
    _grow(self)
    self.spoilt[: len(spoilt)] |= spoilt


_keep = Floor.keep


def _keep_whole(self: Floor, position: int, first: int = 0, end: int | None = None) -> None:
    """Let a durable write keep the whole file."""
    del first, end
    _keep(self, position)


def _keep_length_always(self: Floor, position: int, first: int = 0, end: int | None = None) -> None:
    """Let a durable write keep the length, wherever it ends."""
    _keep(self, position, first, end)
    self.size = position


def _keep_length_never(self: Floor, position: int, first: int = 0, end: int | None = None) -> None:
    """Let a durable write keep no length."""
    size = self.size
    _keep(self, position, first, end)
    self.size = size if end is not None else self.size


_whole_pages = written.whole_pages


def _rounded_out(change: written.ContentChange, old_size: int) -> tuple[int, int]:
    """Let a page that is cut in the middle be metadata, too."""
    if isinstance(change, written.Wrote):
        return 0, 0
    start, end = written.touched(change, old_size)
    return start // 4096, written.num_pages(end)


_init = Outcomes.__init__


def _opened(change: Callable[[Outcomes], None]) -> Apply:
    """Return what changes the outcomes of a file before anybody asks for them."""

    def _changed(self: Outcomes, floor: Floor, end: int) -> None:
        """Work it out, and change it."""
        _init(self, floor, end)
        change(self)

    return replaced(Outcomes, "__init__", _changed)


def _every_kept_change_keeps_the_length(self: Outcomes) -> None:
    """Let a hole make the length durable."""
    self._size_from = max([self._size_from, *(event.position for event in self._events if event.is_metadata)])


def _only_the_newest(self: Outcomes) -> None:
    """Let a page be old or new, and nothing between."""
    newest = {page: event.position for event, span in self._spans for page in range(span.start, span.stop)}
    self._spans = [
        (event, slice(page, page + 1))
        for event, span in self._spans
        for page in range(span.start, span.stop)
        if newest[page] == event.position
    ]


def _whole_or_not_at_all(self: Outcomes) -> None:
    """Let the bytes be there as soon as the length is."""
    self._from = np.maximum(self._from, self._last)


def _sizes_as_told(self: Outcomes, limit: int | None = None) -> list[int]:
    """Leave the lengths between those that were told out."""
    del limit
    return list(dict.fromkeys(self._told_sizes()))


def _first_and_last_size(self: Outcomes) -> list[int]:
    """Tell of the durable length and the newest alone."""
    sizes = [event.size_bytes for event in self._events if event.position > self._size_from]
    return [self._log.size_at(self._size_from), *sizes[-1:]]


def _no_ends_of_holes(self: Outcomes) -> list[int]:
    """Tell of the lengths that the file had alone."""
    sizes = [event.size_bytes for event in self._events if event.position > self._size_from]
    return [self._log.size_at(self._size_from), *sizes]


def _everything_as_it_was(self: Outcomes) -> contents.Choice:
    """Take every page from the same moment, also one that became durable later."""
    return contents.Choice(self._log.size_at(self._last), ((0, len(self._from), self._last),))


_outcomes = Floor.outcomes


def _syncs_keep_no_cuts(self: Floor, limit: int | None) -> Outcomes:
    """Let a file's own sync keep no cut that the order of names has not."""
    size, self.size = self.size, self.log.start
    try:
        return _outcomes(self, limit)
    finally:
        self.size = size
        self._known.clear()


_sync_one = History._keep


def _failures_are_no_failures(self: History, *arguments: Any, has_failed: bool) -> None:
    """Take a failed sync for a good one."""
    del has_failed
    _sync_one(self, *arguments, has_failed=False)


_sync = History._sync


def _failed_sync_of_all(self: History, position: int, change: history.Synced) -> None:
    """Take a failed sync of everything for a good one."""
    _sync(self, position, history.Synced(index=change.index, call=change.call, node=change.node))


def _failed_sync_of_all_is_nothing(self: History, position: int, change: history.Synced) -> None:
    """Pass a failed sync of everything over."""
    if change.node is not None or not change.has_failed:
        _sync(self, position, change)


def _durable_writes_as(call: str) -> Apply:
    """Return what lets O_SYNC and O_DSYNC promise the same."""
    same = {**rules.PROMISES, "fsync": rules.PROMISES[call], "fdatasync": rules.PROMISES[call]}
    original = History._keep_written

    def _keep_written(self: History, position: int, change: history.Wrote) -> None:
        """Keep what another call would."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(history, "PROMISES", same)
            original(self, position, change)

    return replaced(History, "_keep_written", _keep_written)


OF_BYTES = (
    Mutant("a failed fsync spoils nothing", replaced(Floor, "spoil", _never_spoilt), ("replace", "failed"), EXT4),
    Mutant("spoilt for ever", replaced(Floor, "_grow", _grow_without_cure), "written again after a failure", EXT4),
    Mutant(
        "a failed fsync is none", replaced(History, "_keep", _failures_are_no_failures), ("in place", "failed"), POSIX
    ),
    Mutant(
        "a failed sync is none",
        replaced(History, "_sync", _failed_sync_of_all),
        "a failed sync makes nothing durable",
        EXT4,
    ),
    Mutant(
        "a failed sync spoils nothing",
        replaced(History, "_sync", _failed_sync_of_all_is_nothing),
        "a failed sync spoils every file",
        EXT4,
    ),
    Mutant("durable writes are not durable", replaced(History, "_keep_written", nothing), ("direct", "O_SYNC"), EXT4),
    Mutant("O_DSYNC as O_SYNC", _durable_writes_as("fsync"), "one of data does not", EXT4),
    Mutant("O_SYNC as O_DSYNC", _durable_writes_as("fdatasync"), "a durable write brings a rename along", EXT4),
    Mutant("O_SYNC keeps the whole file", replaced(Floor, "keep", _keep_whole), "only its own pages", EXT4),
    Mutant(
        "O_SYNC keeps every length",
        replaced(Floor, "keep", _keep_length_always),
        "appended bytes, and a durable write before them",
        EXT4,
    ),
    Mutant("O_SYNC keeps no length", replaced(Floor, "keep", _keep_length_never), ("append", "O_SYNC"), EXT4),
    Mutant("a durable write is not under way", replaced(History, "_begin", nothing), ("append", "O_SYNC"), EXT4),
    Mutant(
        "pages that are cut off come back",
        replaced(written, "whole_pages", lambda *_: (0, 0)),
        ("in place", "failed"),
        EXT4,
    ),
    Mutant(
        "a cut in a page is metadata",
        replaced(written, "whole_pages", _rounded_out),
        "a page that was cut in the middle is written late",
        EXT4,
    ),
    Mutant(
        "a hole in a page is metadata",
        replaced(written, "whole_pages", _rounded_out),
        "a hole in the middle of a page is written late",
        XFS,
    ),
    Mutant(
        "a hole keeps the length",
        _opened(_every_kept_change_keeps_the_length),
        "appended bytes, and a hole elsewhere",
        EXT4,
    ),
    Mutant("pages old or newest", _opened(_only_the_newest), "a page is as at any moment", EXT4),
    Mutant("bytes with the length", _opened(_whole_or_not_at_all), ("replace", "nothing"), EXT4),
    Mutant(
        "nothing in place after a loss",
        replaced(contents, "_spans_after_loss", lambda *_: ()),
        "written in place after a cut that is lost",
        EXT4,
    ),
    Mutant(
        "all in place after a loss",
        replaced(contents, "_spans_after_loss", lambda events, _: contents._spans(events)),
        "not written in place after a cut that took the page",
        EXT4,
    ),
    Mutant(
        "no lengths between", replaced(Outcomes, "_sizes", _sizes_as_told), "lengths in between, in whole pages", EXT4
    ),
    Mutant(
        "first and last length",
        replaced(Outcomes, "_told_sizes", _first_and_last_size),
        "lengths that the file had",
        EXT4,
    ),
    Mutant(
        "no end of a hole", replaced(Outcomes, "_told_sizes", _no_ends_of_holes), "the end of a hole is a length", EXT4
    ),
    Mutant(
        "all from one moment",
        replaced(Outcomes, "everything", property(_everything_as_it_was)),
        "a durable page in a file whose room is lost",
        POSIX,
    ),
    Mutant(
        "a file's sync keeps no cut",
        replaced(Floor, "outcomes", _syncs_keep_no_cuts),
        "a cut that was synced stays",
        BTRFS,
    ),
    Mutant(
        "cuts are there at once",
        replaced(Floor, "limits", lambda floor: [floor.log.last]),
        ("in place", "nothing"),
        POSIX,
    ),
)

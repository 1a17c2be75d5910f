"""Takes cuts while the target is held before an operation; otherwise it records, as always."""

from __future__ import annotations

import os

from chaos.images import Nudge, nudge
from chaos.intercept.pending import Pending
from chaos.model import Record
from chaos.states.recorder import FolderRecorder
from cutting.bench import Bench
from cutting.schedules import Schedule


class Cut(Record, kw_only=True):
    """What the disk held right before operation `index`, after a nudge; `image` is a digest."""

    index: int
    nudge: Nudge
    image: str


class Cutter:
    """A recorder that cuts before it hands on; `start` is the operation before which all was synced."""

    def __init__(self, recorder: FolderRecorder, bench: Bench, schedule: Schedule) -> None:
        """Take no cut before the target has synced the old checkpoint."""
        self._recorder = recorder
        self._bench = bench
        self._schedule = schedule
        self.cuts: list[Cut] = []
        self.start: int | None = None

    def begin(self, pending: Pending) -> None:
        """Cut, then tell the recorder of the call that is about to be carried out."""
        if self.start is not None:
            self.cut(pending.operation.index, self._schedule.before(pending.operation.index))
        self._recorder.begin(pending)

    def keep(self, data: memoryview) -> None:
        """Tell the recorder of bytes that were written."""
        self._recorder.keep(data)

    def done(self, pending: Pending, result: int, fd: int = -1) -> None:
        """Tell the recorder of a call's result; the first syncfs is the one that makes the old checkpoint durable."""
        self._recorder.done(pending, result, fd)
        if self.start is None and pending.call.name == "syncfs":
            self.start = pending.operation.index + 1

    def skip(self, pending: Pending) -> None:
        """Tell the recorder of a call that was not carried out."""
        self._recorder.skip(pending)

    def note_outside(self, state: os.stat_result, *, is_sync: bool) -> None:
        """Tell the recorder of a call on a file elsewhere."""
        self._recorder.note_outside(state, is_sync=is_sync)

    def note_sync(self, index: int) -> None:
        """Tell the recorder of sync(2)."""
        self._recorder.note_sync(index)

    def cut(self, index: int, nudges: tuple[Nudge, ...]) -> None:
        """Cut once after each nudge."""
        for which in nudges:
            nudge(which, self._bench.live, self._bench.out)
            self.cuts.append(Cut(index=index, nudge=which, image=self._bench.cut()))

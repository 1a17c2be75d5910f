"""What a session tells whoever keeps the data of its operations; who that is, nothing here knows."""

from __future__ import annotations

import os
from typing import Protocol

from chaos.intercept.pending import Pending


class Recorder(Protocol):
    """Takes each call as it is carried out, in the order of the clock, before it is answered."""

    def begin(self, pending: Pending) -> None:
        """Take the call that is about to be carried out, or let run."""

    def keep(self, data: memoryview) -> None:
        """Take bytes that it has just written to a file; the buffer is used again."""

    def done(self, pending: Pending, result: int, fd: int = -1) -> None:
        """Take its result, 0 where it is let run; `fd` is what an open gave."""

    def skip(self, pending: Pending) -> None:
        """Take it that a call was answered as if it had been carried out, and was not."""

    def note_outside(self, state: os.stat_result, *, is_sync: bool) -> None:
        """Take it that a file outside of the folder is about to be synced, or else written."""

    def note_sync(self, index: int) -> None:
        """Take it that everything is made durable before operation `index`: sync(2) has no place on the clock."""

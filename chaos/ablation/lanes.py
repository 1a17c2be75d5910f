"""Lives side by side, each in a lane: a thread with an examiner and a template of its own.

All end when one of them fails, or when the experiment is interrupted.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Final, Self, TypeVar

from chaos.checkpoints.process import Examiner
from chaos.lives.starters import FreshStarter, Starter, WarmStarter, warm_plan

MOST_LANES: Final = 4
Result = TypeVar("Result")


class StoppedError(Exception):
    """The experiment is over; raised within a life, which ends with it."""


class Lane:
    """What one life after the other is run with: an examiner, and a template to fork from once there is a plan for it.

    Lives are fresh until one has left what it had imported (`imported`), and warm after that.
    """

    def __init__(self, is_stopping: threading.Event) -> None:
        """Start nothing before it is needed."""
        self.examiner = Examiner()
        self._is_stopping = is_stopping
        self._warm: WarmStarter | None = None

    def starter(self, imported: Path | None) -> Starter:
        """Return what starts the next life; all that are given `imported` are forked from one template.

        That costs nothing of the truth: the intact rows, which are warm, must end with the bits of a fresh run.
        """
        if imported is None:
            return FreshStarter()
        if self._warm is None:
            self._warm = WarmStarter(warm_plan(imported))
        return self._warm

    def close(self) -> None:
        """End what was started."""
        self.examiner.close()
        if self._warm is not None:
            self._warm.close()

    def go_on(self) -> None:
        """Raise StoppedError where the experiment is to end: called while a life is held."""
        if self._is_stopping.is_set():
            raise StoppedError


class Lanes:
    """Runs tasks in several lanes. Use as a context manager: leaving it ends what still runs, and waits for that."""

    def __init__(self) -> None:
        """Open as many lanes as there are cores, up to a few."""
        number = min(MOST_LANES, os.cpu_count() or 1)
        self._is_stopping = threading.Event()
        self._all = [Lane(self._is_stopping) for _ in range(number)]
        self._free: SimpleQueue[Lane] = SimpleQueue()
        for lane in self._all:
            self._free.put(lane)
        self._threads = ThreadPoolExecutor(max_workers=number)

    def run(self, tasks: Sequence[Callable[[Lane], Result]]) -> list[Result]:
        """Run all tasks and return what they return, in their order; the first error in that order is raised."""
        return [future.result() for future in [self._threads.submit(self._run_one, task) for task in tasks]]

    def _run_one(self, task: Callable[[Lane], Result]) -> Result:
        """Run one task in a lane that is free; there are as many as threads."""
        lane = self._free.get()
        try:
            return task(lane)
        finally:
            self._free.put(lane)

    def __enter__(self) -> Self:
        """Return the lanes themselves."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what still runs."""
        self._is_stopping.set()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for lane in self._all:
            lane.close()

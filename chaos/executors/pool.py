"""Run trials side by side, each in one of several worker processes, which end when this one does.

A worker's standard input is its lifeline: when this process ends, however it ends, every worker sees it close and ends
itself, and the guardians end the target.
"""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from chaos.errors import ChaosError, HarnessError, InconclusiveError, UsageError
from chaos.executors.specification import read_outcome, write_specification
from chaos.executors.task import Reply, Task
from chaos.lives.process import adopt_orphans, end_adopted, keep_alive
from chaos.model import Outcome, TrialSpec

_SLACK_S: Final = 300.0
_END_S: Final = 10.0
_ERRORS: Final[dict[int, type[ChaosError]]] = {2: UsageError, 3: HarnessError, 4: InconclusiveError}


class LocalPool:
    """At most `jobs` trials at a time on this machine. Use as a context manager: leaving it ends all of them."""

    def __init__(self, jobs: int) -> None:
        """Start nothing before it is needed."""
        adopt_orphans()
        self.jobs = jobs
        self._started_s = time.time()
        self._threads = ThreadPoolExecutor(max_workers=jobs)
        self._workers: dict[int, _Worker] = {}
        self._is_open = True

    def narrow(self, jobs: int) -> None:
        """Run at most `jobs` trials at a time from now on."""
        self.jobs = min(self.jobs, jobs)

    def run(self, specs: Iterable[tuple[TrialSpec, Path]]) -> Iterator[Outcome]:
        """Run trials, each in its folder, and yield the outcomes as they come; the first error of a trial is raised.

        A specification is taken from `specs` only when a place is free, so that a generator can stop a campaign.
        """
        waiting = iter(specs)
        yield from self.run_each(lambda _: next(waiting, None))

    def run_each(self, take: Callable[[int], tuple[TrialSpec, Path] | None]) -> Iterator[Outcome]:
        """Ask `take(slot)` for the next trial of each worker that has none, until none has any; yield the outcomes.

        Slots are numbered from 0; a slot's trials are run by the same worker. Outcomes are yielded as they come; while
        one is looked at, `take` is not called.
        """
        running: dict[Future[Outcome], int] = {}
        while True:
            for slot in sorted(set(range(self.jobs)) - set(running.values())):
                task = take(slot)
                if task is not None:
                    running[self._threads.submit(self._run_one, slot, *task)] = slot
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                del running[future]
                yield future.result()

    def _run_one(self, slot: int, spec: TrialSpec, folder: Path) -> Outcome:
        """Let the slot's worker run one trial."""
        write_specification(folder, spec)
        lives = len(spec.trial.crash_points) + 1
        worker = self._workers.get(slot)
        if worker is None:
            worker = self._workers[slot] = _Worker()
        reply = worker.do(Task(folder=str(folder.absolute())), lives * spec.deadline_s + _SLACK_S)
        if reply is None:
            message = f"the worker that ran trial {spec.trial.number} {worker.end()}"
            end_adopted(self._started_s)
            raise HarnessError(message, hint="was it killed by hand, or by a lack of memory?")
        if spec.trial.is_real_cut:  # it is in a mount namespace that ends with it
            self._workers.pop(slot).end()
        if reply.status:
            raise _ERRORS.get(reply.status, HarnessError)(reply.message, hint=reply.hint)
        return read_outcome(folder)

    def close(self) -> None:
        """End all workers and what they run, and wait for them; one that does not end by itself is killed."""
        if self._is_open:
            self._is_open = False
            workers = list(self._workers.values())  # a thread may take its own out meanwhile
            for worker in workers:
                worker.let_go()
            for worker in workers:
                worker.end()
            self._threads.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        """Return the pool itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what still runs."""
        self.close()


class _Worker:
    """One worker process."""

    def __init__(self) -> None:
        """Start it in a session of its own, where no key of the terminal reaches it."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "chaos.executors.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        keep_alive(self._process.pid)
        assert self._process.stdin is not None  # noqa: S101 - opened with PIPE
        assert self._process.stdout is not None  # noqa: S101 - opened with PIPE
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    def do(self, task: Task, timeout_s: float) -> Reply | None:
        """Let the worker do a task; None where it ended, or did not answer in time."""
        try:
            self._stdin.write(msgspec.json.encode(task) + b"\n")
            self._stdin.flush()
        except OSError:
            return None
        if not select.select([self._stdout], [], [], timeout_s)[0]:
            return None
        line = self._stdout.readline()
        return msgspec.json.decode(line, type=Reply) if line.endswith(b"\n") else None

    def let_go(self) -> None:
        """Close the lifeline."""
        with suppress(OSError):
            self._stdin.close()

    def end(self) -> str:
        """See the worker to its end, and say how it ended."""
        self.let_go()
        try:
            status = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return "did not end in time, although each of its lives is bounded"
        self._stdout.close()
        return f"ended with status {status} and said nothing"

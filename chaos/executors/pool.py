"""Run trials side by side, each in one of several worker processes, which end when this one does.

A worker's standard input is its lifeline: when this process ends, however it ends, every worker sees it close and ends
itself, and the guardians end the target.
"""

from __future__ import annotations

import itertools
import queue
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
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
        self._jobs = jobs
        self._started_s = time.time()
        self._threads = ThreadPoolExecutor(max_workers=jobs)
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._is_open = True

    def narrow(self, jobs: int) -> None:
        """Run at most `jobs` trials at a time from now on."""
        self._jobs = min(self._jobs, jobs)

    def run(self, specs: Iterable[tuple[TrialSpec, Path]]) -> Iterator[Outcome]:
        """Run trials, each in its folder, and yield the outcomes as they come; the first error of a trial is raised.

        A specification is taken from `specs` only when a place is free, so that a generator can stop a campaign.
        """
        waiting = iter(specs)
        running: set[Future[Outcome]] = set()
        while True:
            for spec, folder in itertools.islice(waiting, self._jobs - len(running)):
                running.add(self._threads.submit(self._run_one, spec, folder))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()

    def _run_one(self, spec: TrialSpec, folder: Path) -> Outcome:
        """Let a worker run one trial."""
        write_specification(folder, spec)
        lives = len(spec.trial.crash_points) + 1
        worker = self._take_worker()
        reply = worker.do(Task(folder=str(folder.absolute())), lives * spec.deadline_s + _SLACK_S)
        if reply is None:
            message = f"the worker that ran trial {spec.trial.number} {worker.end()}"
            end_adopted(self._started_s)
            raise HarnessError(message, hint="was it killed by hand, or by a lack of memory?")
        self._idle.put(worker)
        if reply.status:
            raise _ERRORS.get(reply.status, HarnessError)(reply.message, hint=reply.hint)
        return read_outcome(folder)

    def _take_worker(self) -> _Worker:
        """Return a worker that has nothing to do; a new one where there is none."""
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            worker = _Worker()
            self._workers.append(worker)
            return worker

    def close(self) -> None:
        """End all workers and what they run, and wait for them; one that does not end by itself is killed."""
        if self._is_open:
            self._is_open = False
            for worker in self._workers:
                worker.let_go()
            for worker in self._workers:
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

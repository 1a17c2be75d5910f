"""Run trials side by side, each as a `chaos trial SPEC --out DIR` process that ends when this one does.

The lifeline is a pipe: the trials hold its reading end, only this process the writing end. When this process ends,
however it ends, every trial sees the pipe close and ends itself, and its guardian ends the target.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from chaos.errors import ChaosError, HarnessError, InconclusiveError, UsageError
from chaos.model import Outcome, TrialSpec

LIFELINE_VARIABLE: Final = "NINELIVES_LIFELINE"
_SLACK_S: Final = 300.0
_END_S: Final = 10.0
_ERRORS: Final[dict[int, type[ChaosError]]] = {2: UsageError, 3: HarnessError, 4: InconclusiveError}


class LocalPool:
    """At most `jobs` trials at a time on this machine. Use as a context manager: leaving it ends all of them."""

    def __init__(self, jobs: int) -> None:
        """Make the lifeline and the waiting threads."""
        self._jobs = jobs
        self._read_end, self._write_end = os.pipe()
        self._threads = ThreadPoolExecutor(max_workers=jobs)
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._is_open = True

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
        """Run one trial process to its end."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            specification = folder / "spec.json"
            specification.write_bytes(msgspec.json.format(msgspec.json.encode(spec)))
        except OSError as error:
            message = f"the run folder cannot be written: {error.strerror}: {folder}"
            raise HarnessError(message, hint="choose another place with --runs DIR, or free some space") from error
        lives = len(spec.trial.crash_points) + 1
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "chaos", "trial", str(specification), "--out", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[self._read_end],
            env={**os.environ, LIFELINE_VARIABLE: str(self._read_end)},
            start_new_session=True,
        )
        self._processes.add(process)
        try:
            _, complaint = process.communicate(timeout=lives * spec.deadline_s + _SLACK_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            message = f"trial {spec.trial.number} did not end in time, although each of its lives is bounded"
            raise HarnessError(message, hint="please report this, with the run folder") from error
        finally:
            self._processes.discard(process)
        return _read_outcome(spec, folder, process.returncode, complaint.decode("utf-8", "replace"))

    def close(self) -> None:
        """End all trials that still run and wait for them; one that does not end by itself is killed."""
        if self._is_open:
            self._is_open = False
            os.close(self._write_end)
            for process in tuple(self._processes):
                try:
                    process.wait(_END_S)
                except subprocess.TimeoutExpired:
                    process.kill()
            self._threads.shutdown(wait=True, cancel_futures=True)
            os.close(self._read_end)

    def __enter__(self) -> Self:
        """Return the pool itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what still runs."""
        self.close()


def _read_outcome(spec: TrialSpec, folder: Path, status: int, complaint: str) -> Outcome:
    """Return the outcome that a trial process left, or raise what it complained of."""
    if status == 0:
        return msgspec.json.decode((folder / "outcome.json").read_bytes(), type=Outcome)
    text = complaint.strip().removeprefix("Error: ")
    kind = _ERRORS.get(status, HarnessError)
    message, _, hint = text.partition("\n")
    raise kind(message or f"trial {spec.trial.number} ended with status {status} and said nothing", hint=hint.strip())

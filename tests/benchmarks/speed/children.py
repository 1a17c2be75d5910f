"""Child processes that cannot outlive the benchmark: each has a deadline, and its descendants end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from chaos.model import Record

_END_S: Final = 10.0


class Finished(Record, kw_only=True):
    """How a child ended: `status` as `subprocess` gives it, None where it was ended at its deadline."""

    status: int | None
    stdout: str
    stderr: str
    elapsed_s: float

    @property
    def complaint(self) -> str:
        """Return the last line that it wrote to standard error, or what else is known."""
        lines = [line for line in self.stderr.splitlines() if line.strip()]
        if self.status is None:
            return f"it was ended after {self.elapsed_s:.0f} s"
        return lines[-1].strip() if lines else f"it ended with status {self.status} and said nothing"


def environment() -> dict[str, str]:
    """Return the environment of every child: the user's settings of `chaos` would change what is measured."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CHAOS_")}
    return {**kept, "PYTHONUNBUFFERED": "1"}


def run_bounded(command: Sequence[str], *, cwd: Path, limit_s: float, env: Mapping[str, str] | None = None) -> Finished:
    """Run a command to its end, or end it and its descendants after `limit_s`; OSError where it cannot be started."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment() if env is None else env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
        status: int | None = process.returncode
    except subprocess.TimeoutExpired:
        end_tree(process)
        stdout, stderr = process.communicate(timeout=_END_S)
        status = None
    finally:
        end_tree(process)
    return Finished(status=status, stdout=stdout, stderr=stderr, elapsed_s=time.perf_counter() - started)


def end_tree(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """End a child that still runs and all that it has started: the root first, since its own may end with it."""
    if process.poll() is not None:
        return
    with suppress(psutil.NoSuchProcess):
        descendants = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait(_END_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # those of its session that nobody is the parent of any more
        _, alive = psutil.wait_procs(descendants, timeout=_END_S)
        for descendant in alive:
            with suppress(psutil.NoSuchProcess):
                descendant.kill()
        psutil.wait_procs(alive, timeout=_END_S)

"""Runs the user's own command that says whether a checkpoint of a format of one's own is whole."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from chaos.errors import UsageError

TAIL_BYTES = 400
PLACE = "{path}"


def run_verify(command: tuple[str, ...], path: Path, deadline_s: float) -> tuple[bool, str]:
    """Run `command` with `{path}` replaced: exit status 0 within `deadline_s` means whole, without a reason.

    Whatever the command leaves running in its session is killed. Raises UsageError when it cannot be started.
    """
    arguments = [part.replace(PLACE, str(path)) for part in command]
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        except OSError as error:
            raise UsageError(
                f"the verify command {command[0]} cannot be started: {error.strerror or error}",
                hint="Mend `verify` in the scenario's [target].",
            ) from error
        except IndexError as error:
            raise UsageError("the verify command is empty", hint="Mend `verify` in the scenario's [target].") from error
        try:
            status = process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            return False, f"the verify command took longer than {deadline_s:g} s"
        finally:
            _end_group(process)
        return status == 0, "" if status == 0 else _reason(status, output)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the command's process group and reap the command."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _reason(status: int, output: IO[bytes]) -> str:
    """Return how the command ended and the last line of what it said."""
    how = f"was ended by signal {-status}" if status < 0 else f"says no with exit status {status}"
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - TAIL_BYTES))
    last = output.read().decode(errors="replace").strip().rpartition("\n")[2]
    return f"the verify command {how}: {last}" if last else f"the verify command {how}"

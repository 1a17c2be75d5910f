"""Runs a program that answers on its standard output, in a session of its own, until its end or a deadline."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from chaos.checkpoints.child import child_environment


class Answer(NamedTuple):
    """How a program ended, and what it said on both streams."""

    status: int
    output: bytes
    complaint: bytes


def ask_program(command: Sequence[str], deadline_s: float) -> Answer:
    """Return what a program answers; raises subprocess.TimeoutExpired. Nothing of its session runs afterwards."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=child_environment(),
        start_new_session=True,
    )
    try:
        output, complaint = process.communicate(timeout=deadline_s)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return Answer(process.returncode, output, complaint)

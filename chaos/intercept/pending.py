"""A call that is held, and the files that are no files of the target: its output and the probe's ticks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chaos.intercept.decode import Call
from chaos.intercept.memory import TargetThread
from chaos.intercept.notify import Notification
from chaos.model import Operation, Record


class Sinks(Record, kw_only=True):
    """The files that stand for the target's output and the probe's ticks; they are made before the life."""

    stdout: Path
    stderr: Path
    ticks: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A held call that would change something the log is about; `operation` is what it would be logged as.

    `path` and `new_path` are the operation's, not yet spelled, where it is on names in the output folder; None else.
    `fd` is a copy of the target's descriptor, or -1; whoever takes a Pending commits, tears or abandons it, which
    closes the copy.
    """

    notification: Notification
    thread: TargetThread
    call: Call
    operation: Operation
    fd: int = -1
    path: str | None = None
    new_path: str | None = None

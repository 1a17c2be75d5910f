"""What passes between the pool and a worker: a task in, a reply out, a line of JSON each."""

from __future__ import annotations

from chaos.model import Record


class Task(Record, kw_only=True):
    """Run the trial that `folder`/spec.json specifies, and leave `folder`/outcome.json; `folder` is absolute."""

    folder: str


class Reply(Record, kw_only=True):
    """How a task ended: `status` 0, or the exit status that its error stands for, with its sentence and hint."""

    status: int = 0
    message: str = ""
    hint: str = ""

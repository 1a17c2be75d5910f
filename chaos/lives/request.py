"""What a life is asked to do, and what it leaves behind; the same for intercepted and polled lives."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from chaos.errors import HarnessError
from chaos.intercept.pending import Sinks
from chaos.model import CrashPoint, FinishedRecovery, LifeRecord, Operation, Record, Target, TargetProfile

TICKS: Final = "ticks.log"


class LifeRequest(Record, kw_only=True):
    """One life: which command, where, and where it is to be struck (None: it runs to its end).

    `folder` is the life's own (logs, scratch), `out` the output folder of its lineage; both absolute. `deadline_s`
    bounds the whole life. In a learning life (a reference) nobody knows yet what acknowledges a save: the checkpoints
    are looked at wherever one may be, and the acknowledgements carry the operation's index instead of a save's ordinal.
    A life that begins from `files` (a digest) and goes the way of its `twin` is stopped early; components in `unsteady`
    do not count for that. With `without_fsync` its fsync and fdatasync are answered, and not carried out.
    `probe_budget` is a share of step time in percent.
    """

    number: int
    command: tuple[str, ...]
    target: Target
    profile: TargetProfile
    folder: str
    out: str
    hash_seed: int
    deadline_s: float
    crash_point: CrashPoint | None = None
    is_learning: bool = False
    files: str = ""
    twin: FinishedRecovery | None = None
    unsteady: tuple[str, ...] = ()
    without_fsync: bool = False
    probe_budget: float = 5.0


class LifeResult(Record, kw_only=True):
    """The record of a life and its operation log."""

    record: LifeRecord
    log: tuple[Operation, ...]


def prepare_folder(request: LifeRequest) -> Sinks:
    """Make the life's folder with empty logs and a scratch folder; HarnessError where that is not possible."""
    folder = Path(request.folder)
    sinks = Sinks(stdout=folder / "stdout.log", stderr=folder / "stderr.log", ticks=folder / TICKS)
    try:
        (folder / "scratch").mkdir(parents=True, exist_ok=True)
        for path in (sinks.stdout, sinks.stderr, sinks.ticks):
            path.write_bytes(b"")
    except OSError as error:
        message = f"the run folder cannot be written: {error.strerror}: {error.filename}"
        raise HarnessError(message, hint="choose another place with --runs DIR, or free some space") from error
    return sinks


def write_log(folder: Path, log: tuple[Operation, ...]) -> None:
    """Store an operation log as `operations.ndjson`, one operation a line."""
    encoder = msgspec.json.Encoder()
    (folder / "operations.ndjson").write_bytes(b"".join(encoder.encode(operation) + b"\n" for operation in log))


def read_log(folder: Path) -> tuple[Operation, ...]:
    """Read an operation log back."""
    decoder = msgspec.json.Decoder(Operation)
    with (folder / "operations.ndjson").open("rb") as lines:
        return tuple(decoder.decode(line) for line in lines)


def output_tail(sinks: Sinks, *, limit_bytes: int = 2000) -> str:
    """Return the last output of a life, standard error after standard output."""
    parts = []
    for path in (sinks.stdout, sinks.stderr):
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - limit_bytes))
            parts.append(file.read(limit_bytes).decode("utf-8", "replace").strip())
    return "\n".join(part for part in parts if part)

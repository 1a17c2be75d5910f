"""`chaos trial SPEC --out DIR`: run one trial from its specification; the unit of work that executors start."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import click
import msgspec

from chaos.errors import HarnessError, UsageError
from chaos.executors.lineage import run_trial
from chaos.executors.pool import LIFELINE_VARIABLE
from chaos.model import Outcome, TrialSpec


@click.command("trial")
@click.argument("specification", type=click.Path(path_type=Path))
@click.option("--out", "folder", type=click.Path(path_type=Path), required=True, help="The trial's folder.")
@click.option("--json", "is_json", is_flag=True, help="Print the outcome as one JSON object.")
def command(*, specification: Path, folder: Path, is_json: bool) -> None:
    """Run one trial from its specification and leave DIR/outcome.json."""
    _end_with_the_supervisor()
    outcome = run_trial(_read(specification), folder.absolute())
    data = msgspec.json.encode(outcome)
    _write(folder, data)
    click.echo(data if is_json else _summary(outcome))


def _write(folder: Path, data: bytes) -> None:
    """Leave the outcome in the trial's folder; HarnessError where the disk does not take it."""
    temporary = folder / "outcome.json.tmp"
    try:
        temporary.write_bytes(data)
        temporary.replace(folder / "outcome.json")
    except OSError as error:
        message = f"the outcome of the trial in {folder} cannot be written: {error.strerror}"
        raise HarnessError(message, hint="choose another place with --runs DIR, or free some space") from error


def _read(path: Path) -> TrialSpec:
    """Read a specification; UsageError where it is missing or is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrialSpec)
    except OSError as error:
        message = f"the specification {path} cannot be read: {error.strerror}"
        raise UsageError(message, hint="give the spec.json of a trial's folder") from error
    except msgspec.MsgspecError as error:
        message = f"{path} is no trial specification: {error}"
        raise UsageError(message, hint="give the spec.json of a trial's folder, made by this version") from error


def _summary(outcome: Outcome) -> str:
    """Say what the trial did, in one line."""
    last = outcome.lives[-1]
    return f"{outcome.kills_landed} kills landed in {len(outcome.lives)} lives; the last one {last.end}"


def _end_with_the_supervisor() -> None:
    """End this process as soon as the lifeline closes: the supervisor is gone, and the guardians see us go."""
    text = os.environ.pop(LIFELINE_VARIABLE, "")
    if text:
        threading.Thread(target=_watch, args=(int(text),), daemon=True).start()


def _watch(fd: int) -> None:
    """Wait for the end of the lifeline."""
    os.set_inheritable(fd, False)
    os.read(fd, 1)
    os._exit(3)

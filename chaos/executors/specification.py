"""The files of one trial: the specification that goes in and the outcome that comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from chaos.errors import HarnessError, UsageError
from chaos.model import Outcome, TrialSpec

SPECIFICATION: Final = "spec.json"
_OUTCOME: Final = "outcome.json"
_ANOTHER_PLACE: Final = "choose another place with --runs DIR, or free some space"


def write_specification(folder: Path, spec: TrialSpec) -> None:
    """Make a trial's folder with its specification; HarnessError where the disk does not take it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SPECIFICATION).write_bytes(msgspec.json.format(msgspec.json.encode(spec)))
    except OSError as error:
        message = f"the run folder cannot be written: {error.strerror}: {folder}"
        raise HarnessError(message, hint=_ANOTHER_PLACE) from error


def read_specification(path: Path) -> TrialSpec:
    """Read a specification; UsageError where it is missing or is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrialSpec)
    except OSError as error:
        message = f"the specification {path} cannot be read: {error.strerror}"
        raise UsageError(message, hint="give the spec.json of a trial's folder") from error
    except msgspec.MsgspecError as error:
        message = f"{path} is no trial specification: {error}"
        raise UsageError(message, hint="give the spec.json of a trial's folder, made by this version") from error


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Leave the outcome in the trial's folder, in one step; HarnessError where the disk does not take it."""
    temporary = folder / f"{_OUTCOME}.tmp"
    try:
        temporary.write_bytes(msgspec.json.encode(outcome))
        temporary.replace(folder / _OUTCOME)
    except OSError as error:
        message = f"the outcome of the trial in {folder} cannot be written: {error.strerror}"
        raise HarnessError(message, hint=_ANOTHER_PLACE) from error


def read_outcome(folder: Path) -> Outcome:
    """Read the outcome that a trial left."""
    return msgspec.json.decode((folder / _OUTCOME).read_bytes(), type=Outcome)

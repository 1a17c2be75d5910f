"""Measure the least that a kill can cost on this machine, in the same run as all else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import msgspec

from .children import run_bounded
from .records import Floor, Script
from .script import TARGETS

_FORKS: Final = 20


class FloorError(Exception):
    """The floor could not be measured, so that torch does not work here, or nothing does."""


class _Printed(msgspec.Struct):
    """What the measuring process prints."""

    fork_s: float
    total_s: float


def measure_floor(script: Script, folder: Path, limit_s: float) -> Floor:
    """Time forks of a warm process that redo half a save interval: the average, where kills fall anywhere alike.

    Raises FloorError where the measuring process fails.
    """
    redone = script.every // 2
    sizes = ("--steps", str(redone), "--forks", str(_FORKS), *script.shape)
    finished = run_bounded((sys.executable, str(TARGETS / "floor.py"), *sizes), cwd=folder, limit_s=limit_s)
    if finished.status != 0:
        raise FloorError(f"the floor could not be measured: {finished.complaint}")
    printed = msgspec.json.decode(finished.stdout, type=_Printed)
    return Floor(forks=_FORKS, redone_steps=redone, fork_s=printed.fork_s, total_s=printed.total_s)

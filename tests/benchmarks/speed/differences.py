"""How fast `chaos diff` compares two checkpoints, beside `cmp` on the same files, and in how much memory."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from chaos.errors import HarnessError
from chaos.model import Record

from .children import run_bounded
from .records import DiffSpeed
from .script import TARGETS

SUFFIXES: Final = ("safetensors", "pt", "npz")
# The first run brings the files into the page cache; the best of the others is the one that nothing disturbed.
_RUNS: Final = 4
_DIFF: Final = (sys.executable, "-m", "chaos", "diff")


class Timed(Record, kw_only=True):
    """One run of a command, as `targets/timed.py` tells it."""

    status: int
    elapsed_s: float
    peak_bytes: int


def measure_differences(size_bytes: int, place: Path, limit_s: float) -> tuple[DiffSpeed, ...]:
    """Measure files of `size_bytes` in each format below `place`; raises HarnessError where a command fails."""
    place.mkdir()
    written = run_bounded(
        (sys.executable, str(TARGETS / "checkpoints.py"), str(place), str(size_bytes)), cwd=place, limit_s=limit_s
    )
    if written.status != 0:
        raise HarnessError(f"the checkpoints to compare could not be written: {written.complaint}")
    return tuple(_measured(suffix, place, limit_s) for suffix in SUFFIXES)


def _measured(suffix: str, place: Path, limit_s: float) -> DiffSpeed:
    """Measure the files of one format."""
    a, b, c = (str(place / f"{name}.{suffix}") for name in "abc")
    cmp = shutil.which("cmp")
    beside = _best((cmp, a, b), 0, place, limit_s) if cmp else None
    equal = _best((*_DIFF, a, b), 0, place, limit_s)
    different = _best((*_DIFF, a, c), 1, place, limit_s)
    return DiffSpeed(
        format=suffix,
        size_bytes=Path(a).stat().st_size,
        cmp_s=None if beside is None else beside.elapsed_s,
        equal_s=equal.elapsed_s,
        different_s=different.elapsed_s,
        peak_bytes=max(equal.peak_bytes, different.peak_bytes),
    )


def _best(command: Sequence[str], status: int, place: Path, limit_s: float) -> Timed:
    """Return the fastest of some runs; raises HarnessError where one does not end with `status`."""
    runs = []
    for _ in range(_RUNS):
        ended = run_bounded((sys.executable, str(TARGETS / "timed.py"), *command), cwd=place, limit_s=limit_s)
        if ended.status != 0:
            raise HarnessError(f"{command[0]} could not be timed: {ended.complaint}")
        runs.append(msgspec.json.decode(ended.stdout, type=Timed))
        if runs[-1].status != status:
            raise HarnessError(f"{' '.join(command)} ended with status {runs[-1].status}: {ended.complaint}")
    return min(runs, key=lambda run: run.elapsed_s)

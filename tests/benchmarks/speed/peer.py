"""ckpt-chaos, if it is installed: it counts file events that Python sees, and ends the process at each from inside."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

import msgspec

from .children import run_bounded
from .records import Counted, Measurement, Script, Sizes, Status, Tool
from .script import FINAL, OUT, command_of

KNOWN_VERSION: Final = "0.1.8"
_MISSING: Final = f"not installed: pip install ckpt-chaos=={KNOWN_VERSION}, or name its command with --ckpt-chaos"
_ALL_POINTS: Final = "100000"
_NOTE: Final = (
    "ckpt-chaos {version}: the process ends itself (os._exit) at a file event that Python sees, or after a file was "
    "written and cut to half; one more life to the end, final bytes compared"
)


class _Point(msgspec.Struct):
    """What it keeps of one crash point: whether the process ended there, and whether it was another event's turn."""

    crashed: bool
    drift: bool
    point: tuple[int, str] | None = None


class _Meta(msgspec.Struct):
    """What it keeps of a run."""

    versions: dict[str, str]


def find_peer(asked: str) -> str | None:
    """Return the command's path: as asked for, else beside this interpreter, else wherever a shell would find it."""
    if asked:
        return shutil.which(asked)
    return shutil.which("ckpt-chaos", path=str(Path(sys.executable).parent)) or shutil.which("ckpt-chaos")


def measure_peer(command: str | None, script: Script, sizes: Sizes, folder: Path) -> Measurement:
    """Let it crash the script at every point that it knows; `command` is None where it is not installed."""
    if command is None:
        return Measurement(tool=Tool.PEER, status=Status.NOT_AVAILABLE, counted=Counted.EVENTS, note=_MISSING)
    work = folder / "work"
    options = ("--work", str(work), "--jobs", str(sizes.peer_jobs), "--max-points", _ALL_POINTS)
    asked = ("--step-regex", r"resumed from step (\d+)", "--result-file", f"{OUT}/{FINAL}")
    finished = run_bounded(
        (command, "run", *options, *asked, "--", *command_of(script)), cwd=folder, limit_s=sizes.limit_s
    )
    if finished.status not in {0, 1}:
        return Measurement(tool=Tool.PEER, status=Status.FAILED, counted=Counted.EVENTS, note=finished.complaint)
    points = _points(work)
    meta = msgspec.json.decode((work / "meta.json").read_bytes(), type=_Meta)
    return Measurement(
        tool=Tool.PEER,
        status=Status.MEASURED,
        counted=Counted.EVENTS,
        number=len(points),
        elapsed_s=finished.elapsed_s,
        points=len(set(points)),
        workers=sizes.peer_jobs,
        verdict="fail" if finished.status else "pass",
        note=_NOTE.format(version=meta.versions.get("ckpt-chaos", "of an unknown version")),
    )


def _points(work: Path) -> list[tuple[int, str]]:
    """Return the points at which the process did end: number of the event, and how."""
    results = (msgspec.json.decode(path.read_bytes(), type=_Point) for path in work.glob("pt_*/result.json"))
    return [result.point for result in results if result.point is not None and result.crashed and not result.drift]

"""The demonstration: a kill inside a save that overwrites its only checkpoint, and the same inside a durable save."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from chaos.checkpoints.weights_only import refused_by_weights_only
from chaos.errors import InconclusiveError
from chaos.journal import ReferenceRecorded
from chaos.model import CrashPoint, FileRole, LifeEnd, Outcome, PlannablePoint
from chaos.reports.demonstration import Demonstration, Side
from chaos.stage import Stage, last_line

_SAVE: Final = 3


def demonstrate(root: Path, tell: Callable[[str], None]) -> Demonstration:
    """Run both halves below `root`; `tell` is called with a line before each step that takes time.

    Raises InconclusiveError where the bundled trainer's saves have no write to tear.
    """
    tell("two uninterrupted runs of each trainer first, to know the expected bits …")
    in_place, durable = Stage("in_place", root), Stage("durable", root)
    torn = _torn_write(in_place.recorded, "resume.pt")
    like = _torn_write(durable.recorded, "resume.pt.tmp", like=torn)
    tell("now the same kill inside both saves, and the restarts …")
    with ThreadPoolExecutor(max_workers=2) as both:
        runs = both.submit(_run, in_place, torn), both.submit(_run, durable, like)
        first, second = (run.result() for run in runs)
    is_lost = not any(state.is_whole for state in first.after) and first.restart_status not in (0, None)
    is_kept = any(state.is_whole for state in second.after) and second.restart_status == 0 and second.is_same_bits
    return Demonstration(
        in_place=first, durable=second, came_out_as_told=is_lost and is_kept, run_dir=str(in_place.folder.parent)
    )


def _torn_write(recorded: ReferenceRecorded, file: str, like: CrashPoint | None = None) -> CrashPoint:
    """Return the middle of the third save's largest write to `file`, or the point that tears as far in as `like`."""
    writes = [point for point in recorded.points if _is_write_in_save(point, file)]
    if not writes:
        message = f"the trainer's save {_SAVE} makes no write to {file} that a kill could tear"
        raise InconclusiveError(message, hint="please report this, with the versions that `chaos doctor` prints")
    if like is None or like.tear_offset is None:
        chosen = max(writes, key=lambda point: len(point.tears))
        tear = chosen.tears[len(chosen.tears) // 2]
    else:
        wanted = like.tear_offset
        _, tear, position = min((abs(t - wanted), t, i) for i, point in enumerate(writes) for t in point.tears)
        chosen = writes[position]
    return CrashPoint(address=chosen.address, expected_phase=chosen.phase, tear_offset=tear)


def _is_write_in_save(point: PlannablePoint, file: str) -> bool:
    """Tell whether a point is a write to `file` in the save of the demonstration that can be torn."""
    return point.address.save == _SAVE and point.address.file == file and bool(point.tears)


def _run(stage: Stage, point: CrashPoint) -> Side:
    """Kill once at `point`, start again, and tell what was seen."""
    return _side(stage.name, *stage.strike(point))


def _side(name: str, outcome: Outcome, out: Path) -> Side:
    """Tell what one half showed."""
    killed, last = outcome.lives[0], outcome.lives[-1]
    if killed.evidence is None:
        message = f"the kill in the {name} trainer's save did not land"
        raise InconclusiveError(message, hint="please report this, with the versions that `chaos doctor` prints")
    said = killed.acknowledgements[-1] if killed.acknowledgements else None
    complaints = refused_by_weights_only([out / "resume.pt"], deadline_s=60.0) if last is not killed else {}
    return Side(
        scenario=name,
        crash_point=str(killed.evidence.crash_point),
        written_bytes=killed.evidence.executed_bytes,
        acknowledged_step=said.step if said else None,
        before=said.files if said else (),
        after=tuple(state for state in killed.crash_state if state.role is FileRole.CHECKPOINT),
        torch_says=next(iter(complaints.values()), ""),
        restart_status=last.exit_status if last.end is LifeEnd.EXITED and last is not killed else None,
        restart_first_step=last.first_step if last is not killed else None,
        restart_said=last_line(last.output_tail),
        is_same_bits=last.exit_status == 0 and not outcome.differences,
    )

"""The demonstration of a loss of power: a save that is renamed without being synced, and the durable one, cut alike.

First by the rules of XFS, in the worst state that they allow; then, where root, loop devices and mkfs.xfs are there, by
really cutting the power of an XFS in an image file.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from chaos.errors import InconclusiveError
from chaos.images import find_usable, parse_kind
from chaos.model import CrashPoint, FaultKind, FileRole, FileSystem, LifeEnd, Outcome
from chaos.reports.power_demonstration import Half, PowerDemonstration, is_lost
from chaos.stage import Stage, last_line

_SAVE: Final = 3
_TRIES: Final = 3
_NOTHING_WRITTEN: Final = 1  # the first harmful state of the model: all names there, and none of the bytes
_IMAGE_BYTES: Final = 256 << 20


def demonstrate_power_loss(root: Path, tell: Callable[[str], None]) -> PowerDemonstration:
    """Run all halves below `root`; `tell` is called with a line before each step that takes time.

    Raises InconclusiveError where the trainer has no step after its third save.
    """
    tell("two uninterrupted runs of each trainer first, to know the expected bits …")
    with ThreadPoolExecutor(max_workers=2) as both:
        without, durable = both.map(lambda name: Stage(name, root), ("no_fsync", "durable"))
    tell("the power goes right after `saved step 30`, by the rules of XFS, and the trainer is started again …")
    model = (_cut(without, is_real=False), _cut(durable, is_real=False))
    (usable,) = find_usable((parse_kind(FileSystem.XFS),))
    real: tuple[Half, ...] = ()
    if not usable.reason:
        tell("now on a real XFS, in an image file, whose power is really cut …")
        real = (_cut_until_lost(without), _cut(durable, is_real=True))
    return PowerDemonstration(
        model=model,
        real=real,
        not_real=usable.reason,
        came_out_as_told=_is_as_told(*model) and all(_has_come_back(half) for half in real[1:]),
        run_dir=str(without.folder.parent),
    )


def _is_as_told(without: Half, durable: Half) -> bool:
    """Tell whether the first half lost what was announced, and the second came back from it."""
    return is_lost(without) and _has_come_back(durable)


def _has_come_back(half: Half) -> bool:
    """Tell whether a trainer has lost nothing that it had announced, and ended well."""
    return half.restart_status == 0 and half.is_same_bits and _has_kept(half)


def _cut_until_lost(stage: Stage) -> Half:
    """Cut a real file system's power, a few times where the luck of a sync elsewhere on the machine saves the files."""
    for _ in range(_TRIES - 1):
        half = _cut(stage, is_real=True)
        if is_lost(half):
            return half
    return _cut(stage, is_real=True)


def _has_kept(half: Half) -> bool:
    """Tell whether what was announced is still there."""
    wanted = {state.digest for state in half.before if state.path == "resume.pt"}
    return wanted <= {state.digest for state in half.after if state.is_whole}


def _cut(stage: Stage, *, is_real: bool) -> Half:
    """Let the power go in the first step after the save, and start the trainer again."""
    points = [point for point in stage.recorded.points if point.address.call == "tick" and not point.address.save]
    save = stage.recorded.reference.profile.saves[_SAVE - 1]
    later = [point for point in points if point.position >= save.ticks_before]
    if not later:
        raise InconclusiveError("the trainer does no step after its third save", hint="please report this")
    point = CrashPoint(
        address=later[0].address,
        expected_phase=later[0].phase,
        fault=FaultKind.POWER_LOSS,
        profile=FileSystem.XFS,
        variant=1 if is_real else _NOTHING_WRITTEN,
        is_real=is_real,
    )
    outcome, _ = stage.strike(point, image_bytes=_IMAGE_BYTES)
    return _half(stage.name, outcome)


def _half(name: str, outcome: Outcome) -> Half:
    """Tell what one half showed."""
    killed, last = outcome.lives[0], outcome.lives[-1]
    if killed.evidence is None or killed.evidence.loss is None:
        raise InconclusiveError(f"the power did not go in the {name} trainer's run", hint="please report this")
    said = killed.acknowledgements[-1] if killed.acknowledgements else None
    return Half(
        scenario=name,
        acknowledged_step=said.step if said else None,
        before=said.files if said else (),
        after=tuple(state for state in killed.crash_state if state.role is FileRole.CHECKPOINT),
        missing=tuple(dict.fromkeys(item.missing for item in killed.evidence.loss.not_durable)),
        restart_status=last.exit_status if last.end is LifeEnd.EXITED and last is not killed else None,
        restart_first_step=last.first_step if last is not killed else None,
        restart_said=last_line(last.output_tail),
        is_same_bits=last.exit_status == 0 and not outcome.differences,
    )

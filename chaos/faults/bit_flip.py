"""`bit_flip`: a kill, and then the newest whole checkpoint is damaged where it lies: one bit of it, or its end.

Stands for: a bit that rots on the disk or on the way to it; a file that was cut by a copy that broke off, or by a check
of the file system. The bit is one of a number that matters, by another tensor, element and bit for each variant;
without tensors it is one of a number in JSON (another digit) or in a pickle, and the file still loads. Padding and
headers are never touched, except perhaps in a file of a format of which nothing is known: then it is any bit of its
middle third. Checksums stay those of the right bytes, so whoever looks can tell.

Does not stand for: wrong bytes that were saved with a checksum made over them (memory that fails before the save),
damage of the only copy of what no checkpoint holds, damage of several files at once.

It strikes after a kill (`chaos.faults.kill`), on the files at rest; times of files are kept. Evidence: that of the
kill, what was done in words, and the checkpoint as it was before. Where no whole checkpoint is there, nothing happens,
and the fault has not landed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from chaos.checkpoints.process import Examiner
from chaos.errors import UsageError
from chaos.model import FaultKind, FileRole, FileState, Phase, PlannablePoint, Record, SaveProfile
from chaos.planners.kinds import Choice, FaultPlan

_ONE_IN_IS_CUT: Final = 4
_PARTS_LEFT: Final = (0.5, 0.0, 0.75, 0.25)
_VARIANTS: Final = 1000


class Damage(Record, kw_only=True):
    """What was done, in words, and the checkpoint that it was done to, as it was before."""

    words: str
    file: FileState


def damage(out: Path, files: Iterable[FileState], variant: int, examiner: Examiner) -> Damage | None:
    """Damage the newest whole checkpoint among `files`, in the folder `out`; None where none can be.

    Three of four variants flip a bit (or change a digit), the others cut the file short, as all do with a file in which
    nothing can be flipped.
    """
    whole = [file for file in files if file.role is FileRole.CHECKPOINT and file.is_whole]
    if not whole:
        return None
    newest = max(whole, key=lambda file: (file.modified_ns, file.path))
    turn, is_cut = divmod(variant, _ONE_IN_IS_CUT)
    if is_cut != _ONE_IN_IS_CUT - 1:
        try:
            flipped = examiner.flip_bit(out / newest.path, variant - turn)
        except UsageError:
            pass  # no number in it, or none that lies open
        else:
            verb = "flipped" if flipped.startswith("bit ") else "changed"
            return Damage(words=f"{flipped} in {newest.path} was {verb}", file=newest)
    return _cut(out, newest, turn)


def _cut(out: Path, file: FileState, turn: int) -> Damage | None:
    """Cut the largest file of a checkpoint short; None where it holds nothing."""
    top = out / file.path
    inside = [top] if top.is_file() else sorted(path for path in top.rglob("*") if path.is_file())
    path = max(inside, key=lambda path: path.stat().st_size, default=None)
    if path is None or not path.stat().st_size:
        return None
    status = path.stat()
    size = int(status.st_size * _PARTS_LEFT[turn % len(_PARTS_LEFT)])
    os.truncate(path, size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    name = path.relative_to(out)
    return Damage(words=f"{name} was cut from {status.st_size:,} to {size:,} bytes", file=file)


def _can_strike(point: PlannablePoint, resumed_from: SaveProfile | None) -> bool:
    """Tell whether a checkpoint should be there, and the life is not one that only begins."""
    return resumed_from is not None and point.phase not in {Phase.STARTUP, Phase.RECOVERY}


def _choose(_point: PlannablePoint, rng: random.Random, ordinal: int) -> Choice:
    """Draw where it is damaged; every fourth file is cut short."""
    turns = _VARIANTS // _ONE_IN_IS_CUT
    return Choice(variant=rng.randrange(turns) * _ONE_IN_IS_CUT + ordinal % _ONE_IN_IS_CUT)


PLAN: Final = FaultPlan(
    kind=FaultKind.BIT_FLIP,
    can_strike=_can_strike,
    choose=_choose,
    per_lineage=1,
)

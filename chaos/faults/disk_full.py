"""`disk_full`: there is no room on the disk, once or from a point on until the life ends: calls fail with ENOSPC.

Stands for: a disk or a quota that is used up by the job itself or by a neighbour; "once" is a neighbour who takes the
room and gives it back. What the page cache was given before is there. On a file system that reserves no room at the
time of a write (a network one), fsync is where it shows: so it can fail here, too (fsync(2), NOTES of write(2)).

Does not stand for: a full disk elsewhere (TMPDIR, logs outside of the output folder), mapped files, where a full disk
is a signal (SIGBUS) and no error, inodes that are used up while there is room for bytes.

Which calls can fail so (ENOSPC in the man pages of section 2): write and its kinds, fallocate, copy_file_range and
their like; fsync; an open that makes a file, mkdir, mknod, symlink, link; rename, for the new entry of the folder. Copy
on write file systems need room even to empty a file or to replace a name, so at the crash point itself such an open or
rename fails as well; later on, only what makes a new name does: what fails nowhere else would spare the target the
worst, an emptied file that cannot be filled.

It strikes by answering the error in place of carrying the call out; with a tear, the first write takes what fits, and
all else fails from there on. The life goes on. Evidence: the number of such answers.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from typing import Final

from chaos.address import DATA_WRITES
from chaos.faults.answers import MAKERS, SYNCS, WRITES, Answer, is_on_file
from chaos.faults.torn_write import at_any_byte, can_tear, within
from chaos.model import CrashPoint, FaultKind, Operation, PlannablePoint
from chaos.planners.kinds import Choice, FaultPlan

CALLS: Final = WRITES | SYNCS | MAKERS | {"openat", "rename"}


def answer_to(
    point: CrashPoint, operation: Operation, *, is_first: bool, is_there: Callable[[], bool]
) -> Answer | None:
    """Return what a full disk answers to an operation (None: it has room enough for that)."""
    if operation.call not in CALLS:
        return None
    is_replacing = operation.call in MAKERS or (operation.call in {"openat", "rename"} and not is_first)
    if is_replacing and is_there():
        return None
    takes_a_part = is_first and point.is_sticky and operation.call in DATA_WRITES
    until = within(point, operation) if takes_a_part else None
    return Answer(errno=errno.ENOSPC) if until is None else Answer(until=until)


def _choose(point: PlannablePoint, rng: random.Random, ordinal: int) -> Choice:
    """Draw whether it lasts (every second one does), and then whether a part of a write fits (half of them)."""
    is_sticky = ordinal % 2 == 0
    fits_in_part = is_sticky and can_tear(point, None) and rng.random() < 0.5  # noqa: PLR2004 half of the time
    return Choice(is_sticky=is_sticky, tear_offset=at_any_byte(point, rng) if fits_in_part else None)


PLAN: Final = FaultPlan(
    kind=FaultKind.DISK_FULL,
    can_strike=lambda point, _resumed_from: is_on_file(point, CALLS),
    choose=_choose,
    per_lineage=1,
    can_go_on=True,
)

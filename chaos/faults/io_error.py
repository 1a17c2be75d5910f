"""`io_error`: the disk cannot be written, once or from a point on until the life ends: calls fail with EIO.

Stands for: a disk, a cable, a controller or a network file system that fails, for a moment or for good. On fsync it is
the error of a write that seemed to succeed: the kernel tells it once (since Linux 4.13 to each descriptor that was open
then), and a later fsync that succeeds proves nothing about those bytes.

Does not stand for: errors of reads; bytes that are wrong without any error (`bit_flip`); a file system that turns
read-only after the first error (EROFS); the loss of the pages that could not be written, which are still in the page
cache here; close(2), which is not held.

Which calls can fail so: write and its kinds, fsync and fdatasync (write(2), fsync(2)); changes of length; whatever
changes names, as it reads and writes the folder's blocks (POSIX allows EIO for each): opens that make or empty a file,
rename, link, symlink, mkdir, rmdir, unlink.

It strikes by answering the error in place of carrying the call out. The life goes on. Evidence: the number of such
answers.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from chaos.faults.answers import MAKERS, SYNCS, WRITES, Answer, is_on_file
from chaos.model import CrashPoint, FaultKind, Operation
from chaos.planners.kinds import Choice, FaultPlan

CALLS: Final = WRITES | SYNCS | MAKERS | {"openat", "rename", "unlink", "rmdir", "truncate", "ftruncate"}


def answer_to(
    point: CrashPoint, operation: Operation, *, is_first: bool, is_there: Callable[[], bool]
) -> Answer | None:
    """Return what a broken disk answers to an operation (None: it does not get so far)."""
    _ = point, is_first
    if operation.call not in CALLS or (operation.call in MAKERS and is_there()):
        return None
    return Answer(errno=errno.EIO)


PLAN: Final = FaultPlan(
    kind=FaultKind.IO_ERROR,
    can_strike=lambda point, _resumed_from: is_on_file(point, CALLS),
    choose=lambda _point, _rng, ordinal: Choice(is_sticky=ordinal % 2 == 0),
    per_lineage=1,
    can_go_on=True,
)

"""What brings some of the unsynced to the disk ahead of the rest, so that more than one image can be seen.

Memory pressure, timers and other programs do so by chance on a real machine; here it is done on purpose.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from enum import StrEnum
from pathlib import Path
from typing import Final

from chaos.errors import HarnessError

_UNRELATED: Final = "unrelated"
# Begins and awaits the commit of a transaction, in linux/btrfs.h: _IOR(0x94, 24, __u64) and _IOW(0x94, 22, __u64).
_BTRFS_IOC_START_SYNC: Final = 0x80089418
_BTRFS_IOC_WAIT_SYNC: Final = 0x40089416
_WRITE_AND_WAIT: Final = 7  # SYNC_FILE_RANGE_WAIT_BEFORE | _WRITE | _WAIT_AFTER


class Nudge(StrEnum):
    """What is done before a cut."""

    NONE = "none"
    UNRELATED_FSYNC = "unrelated_fsync"
    COMMIT = "commit"
    FIRST_HALF = "first_half"
    SECOND_HALF = "second_half"


def nudge(which: Nudge, mounted: Path, out: Path) -> None:
    """Do it to the file system on `mounted`; the halves are those of each file below `out`.

    An fsync of a file that nobody else has anything to do with brings others' names with it on a file system with one
    journal, but not on btrfs. A commit does so everywhere; a timer makes one every 5 (ext4) to 30 (xfs, btrfs) seconds.
    Writeback of a half brings data, and nothing that makes it reachable.
    """
    match which:
        case Nudge.UNRELATED_FSYNC:
            _fsync_unrelated(mounted / _UNRELATED)
        case Nudge.COMMIT:
            _commit(mounted)
        case Nudge.FIRST_HALF | Nudge.SECOND_HALF:
            for path in _files(out):
                _write_back(path, is_first=which is Nudge.FIRST_HALF)
        case _:
            pass


def _fsync_unrelated(path: Path) -> None:
    """Make a file a little longer, and durable."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, b"nudge")
        os.fsync(fd)
    finally:
        os.close(fd)


def _commit(mounted: Path) -> None:
    """Commit what the file system has of names and lengths, without writing data that nobody asked for."""
    fd = os.open(mounted, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        transaction = fcntl.ioctl(fd, _BTRFS_IOC_START_SYNC, struct.pack("Q", 0))
        fcntl.ioctl(fd, _BTRFS_IOC_WAIT_SYNC, transaction)
    except OSError as error:
        if error.errno != errno.ENOTTY:
            raise
        _fsync_unrelated(mounted / _UNRELATED)  # no btrfs: there is one journal, which this commits
    finally:
        os.close(fd)


def _files(folder: Path) -> list[Path]:
    """Return the files below a folder, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _write_back(path: Path, *, is_first: bool) -> None:
    """Write half of a file's dirty pages to the disk: sync_file_range(2), which writes no metadata."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        half = os.fstat(fd).st_size // 2
        start, length = (0, half) if is_first else (half, 0)  # a length of 0 is: to the end
        if half == 0:
            return
        libc = ctypes.CDLL(None, use_errno=True)
        offsets = ctypes.c_int64(start), ctypes.c_int64(length)
        if libc.sync_file_range(fd, *offsets, ctypes.c_uint(_WRITE_AND_WAIT)):
            number = ctypes.get_errno()
            raise HarnessError(f"writeback of {path} failed: {os.strerror(number)}", hint="see `dmesg`")
    finally:
        os.close(fd)

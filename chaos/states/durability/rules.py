"""What file systems and calls promise about a loss of power: the rules of the model, as data, each with its source.

The model is conservative: what is not promised here may be lost. It assumes a disk that keeps what it has confirmed
(write barriers are on), and that single pages of 4096 bytes are written whole or not at all: so it is of file systems
with blocks of 4096 bytes (an ext4 of less than 512 MB has blocks of 1024 by default, and tears pages there; measured).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from chaos.model import FileSystem
from chaos.states.changes import SYNCED_ELSEWHERE


class NameOrder(StrEnum):
    """In which order changes of names (and of lengths, other than by writing) come to the disk.

    PREFIX: as a prefix of their order. One journal for all metadata: a transaction holds everything before it (jbd2;
    the XFS log). Sources: Documentation/filesystems/ext4/journal.rst and xfs-delayed-logging-design.rst of Linux; that
    a rename never overtakes what was before it was also seen in every image of ext4 and XFS that tests/filesystems
    takes.

    LOGGED: as a prefix, plus the changes of the names of what was fsynced since, with those that they rest on. The
    fsync of btrfs writes a log of that inode alone, which is replayed over the last full commit: an earlier rename was
    absent while a later, fsynced file was present (measured). Source: the description of the log tree in
    fs/btrfs/tree-log.c; Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI 2018.

    FREE: every name by itself, in any order, and the two halves of a rename, too: what POSIX leaves open. Source:
    IEEE Std 1003.1 (fsync, rename: no word about a crash); Pillai et al., "All File Systems Are Not Created Equal",
    OSDI 2014, who find file systems that reorder and split these.
    """

    PREFIX = "prefix"
    LOGGED = "logged"
    FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one file system.

    `fsync_keeps_names`: fsync of a file makes its names durable, too. POSIX asks for the file's data and attributes
    alone (fsync(2): "does not necessarily ensure that the entry in the directory … has also reached disk"); ext4 and
    XFS force the log up to the inode's last change, which includes its creation and every rename of it; btrfs logs an
    inode with its names.

    `sync_waits`: sync and syncfs return when everything is durable. Linux does (sync(2), NOTES); POSIX lets sync
    return when the writing is scheduled.
    """

    name_order: NameOrder
    fsync_keeps_names: bool
    sync_waits: bool


RULES: Mapping[FileSystem, Rules] = MappingProxyType(
    {
        FileSystem.POSIX: Rules(name_order=NameOrder.FREE, fsync_keeps_names=False, sync_waits=False),
        FileSystem.EXT4: Rules(name_order=NameOrder.PREFIX, fsync_keeps_names=True, sync_waits=True),
        FileSystem.XFS: Rules(name_order=NameOrder.PREFIX, fsync_keeps_names=True, sync_waits=True),
        FileSystem.BTRFS: Rules(name_order=NameOrder.LOGGED, fsync_keeps_names=True, sync_waits=True),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a call on one file or folder makes durable when it returns without an error.

    `data`: bytes and length. `entries`: of a folder, the names in it. `names`: of a file, the names that it has, where
    the file system keeps names with files. `creation`: the name that it was made under, on the same condition.
    """

    data: bool = False
    entries: bool = False
    names: bool = False
    creation: bool = False


# fsync(2), open(2) (O_SYNC and O_DSYNC behave as if each write were followed by fsync and fdatasync). fdatasync leaves
# out what is not needed to read the data back: a rename is not, the inode itself is (ext4 and XFS then force the log
# up to its creation). Whether it keeps the entries of a folder differs (ext4 does not count them as its data), so it
# promises none. sync_file_range(2) writes pages out, but neither metadata nor the disk's own cache: "not a data
# integrity operation". msync(2) with MS_SYNC is fdatasync of the mapped range (vfs_fsync_range with datasync).
# ext4's replace-by-rename heuristic (auto_da_alloc) starts writeback and waits for nothing: it is no rule here (zeros
# in 11 of 32 cuts; measured).
PROMISES: Mapping[str, Promise] = MappingProxyType(
    {
        "fsync": Promise(data=True, entries=True, names=True, creation=True),
        "fdatasync": Promise(data=True, creation=True),
        "msync": Promise(data=True, creation=True),
        "sync_file_range": Promise(),
        SYNCED_ELSEWHERE: Promise(data=True),
    }
)
EVERYTHING = frozenset({"sync", "syncfs"})
NO_PROMISE = Promise()

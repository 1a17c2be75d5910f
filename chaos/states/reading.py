"""Reading the real output folder: what a node is, when it was changed, which bytes it has."""

# ruff: noqa: PTH115, PTH208 - names are bytes, and files may have none

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from chaos.states.changes import NodeKind, Stamp, Wrote, to_text
from chaos.states.content import PIECE_BYTES, ContentStore, Piece

_GET_GENERATION: Final = 0x80087601  # FS_IOC_GETVERSION
_KINDS: Final = {
    stat.S_IFREG: NodeKind.FILE,
    stat.S_IFDIR: NodeKind.FOLDER,
    stat.S_IFLNK: NodeKind.SYMLINK,
    stat.S_IFIFO: NodeKind.FIFO,
}

Identity = tuple[int, int]


def identity(state: os.stat_result) -> Identity:
    """Return what a file is known by for as long as it lives."""
    return state.st_dev, state.st_ino


def generation(fd: int) -> int | None:
    """Return what tells a file from an earlier one with the same inode number; None where the file system has none."""
    answer = bytearray(8)
    try:
        fcntl.ioctl(fd, _GET_GENERATION, answer)
    except OSError:
        return None
    return int.from_bytes(answer[:4], "little")


def kind_of(state: os.stat_result) -> NodeKind | None:
    """Return what a file is; None for sockets and devices, which hold nothing that could be built again."""
    return _KINDS.get(stat.S_IFMT(state.st_mode))


def stamp(node: int, state: os.stat_result) -> Stamp:
    """Return a node's permissions and time as they are."""
    return Stamp(node=node, mode=stat.S_IMODE(state.st_mode), modified_ns=state.st_mtime_ns)


def read_attributes(file: int | bytes) -> dict[str, str]:
    """Return the extended attributes of a descriptor or path that anybody may set, as changes write them."""
    found = {}
    with suppress(OSError):  # a file system without them has none
        for name in os.listxattr(file):
            if name.startswith("user."):
                found[to_text(os.fsencode(name))] = os.getxattr(file, name).hex()
    return found


def link_text(path: bytes) -> str:
    """Return what a symbolic link says, as changes write it."""
    return to_text(os.readlink(path))


def open_to_read(path: bytes) -> int:
    """Open a file for reading, whatever it was opened for before; OSError where that is denied."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)


def descriptor_path(fd: int) -> bytes:
    """Return a path to the file behind one of our descriptors, which works where it has no name, too."""
    return b"/proc/self/fd/%d" % fd


def data_ranges(fd: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges from `start` to `end` that hold data; the rest is holes."""
    while start < end:
        try:
            first = os.lseek(fd, start, os.SEEK_DATA)
            last = min(os.lseek(fd, first, os.SEEK_HOLE), end)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return
        if first < last:
            yield first, last
        start = last if last > start else end


def read_pieces(fd: int, start: int, end: int) -> Iterator[bytes]:
    """Yield a file's bytes from `start` to `end`, each but the last `PIECE_BYTES` long."""
    while start < end:
        data = os.pread(fd, min(PIECE_BYTES, end - start), start)
        if not data:
            return
        yield data
        start += len(data)


def stored_range(store: ContentStore, fd: int, start: int, end: int) -> tuple[Piece, ...]:
    """Keep a file's bytes from `start` to `end` and return their pieces."""
    return tuple(store.put(data) for data in read_pieces(fd, start, end))


def stored_writes(store: ContentStore, fd: int, node: int) -> Iterator[Wrote]:
    """Keep all that a file holds, and yield the changes that would put it into an empty one."""
    for start, end in data_ranges(fd, 0, os.fstat(fd).st_size):
        pieces = stored_range(store, fd, start, end)
        yield Wrote(node=node, offset=start, pieces=pieces)


def entries(folder: bytes) -> list[bytes]:
    """Return the names in a folder, in order; none where it cannot be read."""
    found: list[bytes] = []
    with suppress(OSError):
        found = sorted(os.listdir(folder))
    return found

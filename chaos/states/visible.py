"""A digest of everything that can be seen in a folder when a life begins: two lives find the same, or they do not.

Not only the watched files: names, kinds, bytes, permissions, extended attributes, targets of links, which names are of
one file. Times are of the clock and never equal, but their order counts, since a target may take the newest file for
the newest checkpoint; and a time of whole seconds, which the target has set.
"""

# ruff: noqa: PTH115, PTH118, PTH123, PTH208 - names are bytes, and links are not followed

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import xxhash

_CHUNK_BYTES: Final = 1 << 20
_SECOND_NS: Final = 1_000_000_000

_Entry = tuple[bytes, os.stat_result]


def visible_digest(folder: Path, circumstances: Iterable[str] = ()) -> str:
    """Return the digest, hexadecimal, of a folder in which nothing moves, and of the circumstances of a life in it.

    Empty where something in the folder cannot be read: then nobody can tell what a life finds.
    """
    state = xxhash.xxh3_128()
    for word in circumstances:
        state.update(_framed(word.encode("utf-8", "surrogateescape")))
    try:
        root = os.fsencode(folder)
        entries = list(_walk(root, b""))
        state.update(_described(root, os.lstat(root), is_root=True))
        for name, status in entries:
            state.update(_framed(name) + _described(os.path.join(root, name), status))
            if stat.S_ISREG(status.st_mode):
                state.update(_content_digest(os.path.join(root, name)))
    except OSError:
        return ""
    state.update(_names_of_one_file(entries) + _order_in_time(entries))
    return state.hexdigest()


def _walk(root: bytes, base: bytes) -> Iterator[_Entry]:
    """Yield the relative name and status of everything below `root`, in the order of names."""
    for name in sorted(os.listdir(os.path.join(root, base))):
        path = os.path.join(base, name)
        status = os.lstat(os.path.join(root, path))
        yield path, status
        if stat.S_ISDIR(status.st_mode):
            yield from _walk(root, path)


def _described(path: bytes, status: os.stat_result, *, is_root: bool = False) -> bytes:
    """Return kind, permissions, owner, attributes and target of a link, and a time that was set; of a root no time."""
    words = [f"{status.st_mode:o} {status.st_uid} {status.st_gid} {status.st_rdev}".encode()]
    for name in sorted(_attributes(path)):
        words += [os.fsencode(name), os.getxattr(path, name, follow_symlinks=False)]
    if stat.S_ISLNK(status.st_mode):
        words.append(os.readlink(path))
    if not is_root and status.st_mtime_ns % _SECOND_NS == 0:
        words.append(str(status.st_mtime_ns).encode())
    return _framed(b"".join(map(_framed, words)))


def _attributes(path: bytes) -> list[str]:
    """Return the names of a file's extended attributes; none where the file system has no such thing."""
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError:
        return []


def _content_digest(path: bytes) -> bytes:
    """Return the digest of a file's bytes; raises OSError."""
    state = xxhash.xxh3_128()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(_CHUNK_BYTES):
            state.update(piece)
    return state.digest()


def _names_of_one_file(entries: Iterable[_Entry]) -> bytes:
    """Return which names are of one file."""
    groups: dict[tuple[int, int], list[bytes]] = {}
    for name, status in entries:
        if not stat.S_ISDIR(status.st_mode) and status.st_nlink > 1:
            groups.setdefault((status.st_dev, status.st_ino), []).append(name)
    return b"".join(_framed(b"".join(map(_framed, names))) for _, names in sorted(groups.items(), key=_first_name))


def _first_name(group: tuple[tuple[int, int], list[bytes]]) -> bytes:
    return group[1][0]


def _order_in_time(entries: Iterable[_Entry]) -> bytes:
    """Return the names in the order of their modification times, those of equal times together."""
    by_time: dict[int, list[bytes]] = {}
    for name, status in entries:
        by_time.setdefault(status.st_mtime_ns, []).append(name)
    return b"".join(_framed(b"".join(map(_framed, by_time[time]))) for time in sorted(by_time))


def _framed(data: bytes) -> bytes:
    """Return bytes behind their length, so that no two sequences of them look alike."""
    return len(data).to_bytes(8, "little") + data

"""Turn a held call into what it is about to do: which files, which bytes, which name appears or goes.

A `Call` is neutral: it says what the kernel would do with the arguments, not what they mean to a checkpoint. Its
`effect` says how the supervisor treats it.
"""

# ruff: noqa: PTH116 - the target's paths are bytes

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

from chaos.intercept.memory import TargetThread
from chaos.intercept.notify import Notification
from chaos.intercept.syscalls import (
    AT_EMPTY_PATH,
    AT_FDCWD,
    AT_REMOVEDIR,
    AT_SYMLINK_FOLLOW,
    O_ACCMODE,
    O_CREAT,
    O_EXCL,
    O_PATH,
    O_TMPFILE_BIT,
    O_TRUNC,
    RESOLVE_BENEATH,
    RESOLVE_IN_ROOT,
    Machine,
)
from chaos.model import Record


class Effect(StrEnum):
    """How a call is treated: ignored, let run and logged, or carried out by the supervisor and logged."""

    NONE = "none"
    METADATA = "metadata"
    DATA = "data"
    NAMES = "names"
    OPEN = "open"
    SYNC = "sync"
    SHARED_MAPPING = "shared_mapping"
    EXIT = "exit"


class Call(Record, kw_only=True):
    """One decoded call. `name` is without width suffixes; `fd` is the descriptor written to, or -1.

    `path` and `new_path` are usable by the supervisor (see `TargetThread.path_argument`); `flags` and `mode` are those
    of an open. `segments` are (address, length) pairs of the data; `offset` is None for calls that write at the
    descriptor's own offset. `is_transfer`: the data come from another descriptor. `resolve`, for openat2 alone, are its
    rules for the way to the file; they hold from the folder `base` on, along `text`.
    """

    name: str
    effect: Effect
    fd: int = -1
    path: bytes | None = None
    new_path: bytes | None = None
    flags: int = 0
    mode: int = 0
    segments: tuple[tuple[int, int], ...] = ()
    offset: int | None = None
    size_bytes: int = 0
    is_transfer: bool = False
    resolve: int | None = None
    base: bytes = b""
    text: bytes = b""


_IGNORED: Final = Call(name="", effect=Effect.NONE)


def signed(value: int) -> int:
    """Return the low 32 bits of a register as a C int."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def signed64(value: int) -> int:
    """Return a register as a C long."""
    return value - (1 << 64) if value & (1 << 63) else value


Decoder = Callable[[TargetThread, tuple[int, int, int, int, int, int]], Call]


def _write(_thread: TargetThread, a: tuple[int, ...]) -> Call:
    return Call(name="write", effect=Effect.DATA, fd=signed(a[0]), segments=((a[1], a[2]),), size_bytes=a[2])


def _pwrite(_thread: TargetThread, a: tuple[int, ...]) -> Call:
    return Call(
        name="pwrite",
        effect=Effect.DATA,
        fd=signed(a[0]),
        segments=((a[1], a[2]),),
        size_bytes=a[2],
        offset=signed64(a[3]),
    )


def _vector(name: str, thread: TargetThread, a: tuple[int, ...], offset: int | None, flags: int = 0) -> Call:
    """Decode the calls that gather from an array."""
    segments = thread.read_vector(a[1], a[2])
    if segments is None:
        return _IGNORED
    size = sum(length for _, length in segments)
    return Call(
        name=name, effect=Effect.DATA, fd=signed(a[0]), segments=segments, size_bytes=size, offset=offset, flags=flags
    )


def _writev(thread: TargetThread, a: tuple[int, ...]) -> Call:
    return _vector("writev", thread, a, None)


def _pwritev(thread: TargetThread, a: tuple[int, ...]) -> Call:
    return _vector("pwritev", thread, a, signed64(a[3]))


def _pwritev2(thread: TargetThread, a: tuple[int, ...]) -> Call:
    offset = signed64(a[3])
    return _vector("pwritev", thread, a, None if offset == -1 else offset, flags=signed(a[5]))


def _by_fd(name: str, effect: Effect, fd_index: int = 0) -> Decoder:
    """Make a decoder for a call on one descriptor."""

    def decode(_thread: TargetThread, a: tuple[int, int, int, int, int, int]) -> Call:
        return Call(name=name, effect=effect, fd=signed(a[fd_index]))

    return decode


def _transfer(name: str, fd_index: int, size_index: int) -> Decoder:
    """Make a decoder for a call that moves bytes from one descriptor to another."""

    def decode(_thread: TargetThread, a: tuple[int, int, int, int, int, int]) -> Call:
        return Call(name=name, effect=Effect.DATA, fd=signed(a[fd_index]), size_bytes=a[size_index], is_transfer=True)

    return decode


def _copy_file_range(thread: TargetThread, a: tuple[int, ...]) -> Call:
    """Decode copy_file_range; where it writes may be told by pointer."""
    offset = int.from_bytes(thread.read(a[3], 8), "little") if a[3] else None
    return Call(
        name="copy_file_range", effect=Effect.DATA, fd=signed(a[2]), size_bytes=a[4], offset=offset, is_transfer=True
    )


def _clone(_thread: TargetThread, a: tuple[int, ...]) -> Call:
    return Call(name="clone_range", effect=Effect.DATA, fd=signed(a[0]), is_transfer=True)


def _by_path(name: str, effect: Effect, *, at: bool) -> Decoder:
    """Make a decoder for a call on one path, with a folder's descriptor before it where `at`."""

    def decode(thread: TargetThread, a: tuple[int, int, int, int, int, int]) -> Call:
        path = thread.path_argument(signed(a[0]), a[1]) if at else thread.path_argument(AT_FDCWD, a[0])
        return Call(name=name, effect=effect, path=path, mode=a[2] if at else a[1])

    return decode


def _metadata_at(name: str) -> Decoder:
    """Make a decoder for a call on the metadata of a path below a folder's descriptor, or of that descriptor itself."""

    def decode(thread: TargetThread, a: tuple[int, int, int, int, int, int]) -> Call:
        if a[1] == 0 or thread.read_string(a[1]) == b"":
            return Call(name=name, effect=Effect.METADATA, fd=signed(a[0]))
        return Call(name=name, effect=Effect.METADATA, path=thread.path_argument(signed(a[0]), a[1]))

    return decode


def _mknod(name_index: int) -> Decoder:
    """Make a decoder for mknod (0) and mknodat (1); device files, which hold no bytes of the folder, are let run."""

    def decode(thread: TargetThread, a: tuple[int, int, int, int, int, int]) -> Call:
        mode = a[name_index + 1] & 0xFFFFFFFF
        folder = signed(a[0]) if name_index else AT_FDCWD
        effect = Effect.METADATA if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else Effect.NAMES
        return Call(name="mknod", effect=effect, path=thread.path_argument(folder, a[name_index]), mode=mode)

    return decode


def _unlinkat(thread: TargetThread, a: tuple[int, ...]) -> Call:
    name = "rmdir" if signed(a[2]) & AT_REMOVEDIR else "unlink"
    return Call(name=name, effect=Effect.NAMES, path=thread.path_argument(signed(a[0]), a[1]), flags=signed(a[2]))


def _two_paths(name: str, *, at: bool, flags_index: int | None = None) -> Decoder:
    """Make a decoder for rename and link."""

    def decode(thread: TargetThread, a: tuple[int, int, int, int, int, int]) -> Call:
        if at:
            may_be_empty = name == "link" and bool(signed(a[4]) & AT_EMPTY_PATH)
            old = thread.path_argument(signed(a[0]), a[1], may_be_empty=may_be_empty)
            new = thread.path_argument(signed(a[2]), a[3])
        else:
            old, new = thread.path_argument(AT_FDCWD, a[0]), thread.path_argument(AT_FDCWD, a[1])
        if old is None or new is None:
            return _IGNORED
        flags = signed(a[flags_index]) if flags_index is not None else 0
        if name == "link" and flags & AT_EMPTY_PATH:
            # The path now goes through /proc/<id>/fd/N, which must be followed.
            flags = (flags | AT_SYMLINK_FOLLOW) & ~AT_EMPTY_PATH
        return Call(name=name, effect=Effect.NAMES, path=old, new_path=new, flags=flags)

    return decode


def _symlink(thread: TargetThread, a: tuple[int, ...]) -> Call:
    return _linking(thread.read_string(a[0]), thread.path_argument(AT_FDCWD, a[1]))


def _symlinkat(thread: TargetThread, a: tuple[int, ...]) -> Call:
    return _linking(thread.read_string(a[0]), thread.path_argument(signed(a[1]), a[2]))


def _linking(content: bytes | None, new: bytes | None) -> Call:
    """Decode a symlink: `path` is what it will say, `new_path` its name."""
    if not content or new is None:
        return _IGNORED
    return Call(name="symlink", effect=Effect.NAMES, path=content, new_path=new)


def _opening(path: bytes | None, flags: int, mode: int) -> Call:
    """Decode an open: only one that makes or empties a regular file is carried out by the supervisor."""
    if path is None or flags & O_PATH:
        return _IGNORED
    return Call(name="openat", effect=Effect.OPEN, path=path, flags=flags & 0xFFFFFFFF, mode=mode & 0o7777)


def _open(thread: TargetThread, a: tuple[int, ...]) -> Call:
    return _opening(thread.path_argument(AT_FDCWD, a[0]), a[1], a[2])


def _creat(thread: TargetThread, a: tuple[int, ...]) -> Call:
    return _opening(thread.path_argument(AT_FDCWD, a[0]), os.O_WRONLY | O_CREAT | O_TRUNC, a[1])


def _openat(thread: TargetThread, a: tuple[int, ...]) -> Call:
    return _opening(thread.path_argument(signed(a[0]), a[1]), a[2], a[3])


def _openat2(thread: TargetThread, a: tuple[int, ...]) -> Call:
    how = thread.read(a[2], 24)
    flags, mode, resolve = (int.from_bytes(how[start : start + 8], "little") for start in (0, 8, 16))
    text = thread.read_string(a[1])
    if not text or not flags & (O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE_BIT):
        return _IGNORED
    base = thread.folder(signed(a[0]))
    path = thread.path_argument(signed(a[0]), a[1])
    if base is not None and resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT):
        path = base + b"/" + text.lstrip(b"/")
    opening = _opening(path, flags, mode)
    return msgspec.structs.replace(opening, mode=mode, resolve=resolve, base=base or b"", text=text)


def _mmap(_thread: TargetThread, a: tuple[int, ...]) -> Call:
    return Call(name="mmap", effect=Effect.SHARED_MAPPING, fd=signed(a[4]), size_bytes=a[1])


def _truncate(thread: TargetThread, a: tuple[int, ...]) -> Call:
    return Call(name="truncate", effect=Effect.NAMES, path=thread.path_argument(AT_FDCWD, a[0]), size_bytes=a[1])


def _ftruncate(_thread: TargetThread, a: tuple[int, ...]) -> Call:
    return Call(name="ftruncate", effect=Effect.DATA, fd=signed(a[0]), size_bytes=a[1])


def _fallocate(_thread: TargetThread, a: tuple[int, ...]) -> Call:
    return Call(name="fallocate", effect=Effect.DATA, fd=signed(a[0]), flags=signed(a[1]), offset=a[2], size_bytes=a[3])


def _sync(_thread: TargetThread, _a: tuple[int, ...]) -> Call:
    return Call(name="sync", effect=Effect.METADATA)


def _exit_group(_thread: TargetThread, _a: tuple[int, ...]) -> Call:
    return Call(name="exit", effect=Effect.EXIT)


_DECODERS: Final[dict[str, Decoder]] = {
    "write": _write,
    "pwrite64": _pwrite,
    "writev": _writev,
    "pwritev": _pwritev,
    "pwritev2": _pwritev2,
    "sendfile": _transfer("sendfile", 0, 3),
    "splice": _transfer("splice", 2, 4),
    "copy_file_range": _copy_file_range,
    "ioctl": _clone,
    "ftruncate": _ftruncate,
    "fallocate": _fallocate,
    "truncate": _truncate,
    "open": _open,
    "creat": _creat,
    "openat": _openat,
    "openat2": _openat2,
    "mmap": _mmap,
    "rename": _two_paths("rename", at=False),
    "renameat": _two_paths("rename", at=True),
    "renameat2": _two_paths("rename", at=True, flags_index=4),
    "link": _two_paths("link", at=False),
    "linkat": _two_paths("link", at=True, flags_index=4),
    "symlink": _symlink,
    "symlinkat": _symlinkat,
    "unlink": _by_path("unlink", Effect.NAMES, at=False),
    "unlinkat": _unlinkat,
    "rmdir": _by_path("rmdir", Effect.NAMES, at=False),
    "mkdir": _by_path("mkdir", Effect.NAMES, at=False),
    "mkdirat": _by_path("mkdir", Effect.NAMES, at=True),
    "mknod": _mknod(0),
    "mknodat": _mknod(1),
    "fsync": _by_fd("fsync", Effect.SYNC),
    "fdatasync": _by_fd("fdatasync", Effect.SYNC),
    "sync_file_range": _by_fd("sync_file_range", Effect.METADATA),
    "syncfs": _by_fd("syncfs", Effect.METADATA),
    "sync": _sync,
    "exit_group": _exit_group,
    **{name: _by_fd(name, Effect.METADATA) for name in ("fchmod", "fchown", "fsetxattr", "fremovexattr")},
    **{
        name: _by_path(name.removeprefix("l"), Effect.METADATA, at=False)
        for name in (
            "chmod",
            "chown",
            "lchown",
            "utime",
            "utimes",
            "setxattr",
            "lsetxattr",
            "removexattr",
            "lremovexattr",
        )
    },
    **{
        name: _metadata_at(short)
        for name, short in (
            ("fchmodat", "chmod"),
            ("fchmodat2", "chmod"),
            ("fchownat", "chown"),
            ("utimensat", "utime"),
            ("futimesat", "utime"),
        )
    },
}


def decode(machine: Machine, thread: TargetThread, notification: Notification) -> Call:
    """Return what the held call is about to do; a call with effect NONE where the number is none of ours.

    Raises TargetGoneError where the thread died meanwhile.
    """
    decoder = _DECODERS.get(machine.names.get(notification.number, ""))
    return _IGNORED if decoder is None else decoder(thread, notification.arguments)


def follows_links(call: Call) -> bool:
    """Tell whether the last part of a call's first path is followed where it is a symbolic link."""
    if call.effect is Effect.OPEN:
        is_new = call.flags & O_CREAT and call.flags & O_EXCL
        return not is_new and not call.flags & os.O_NOFOLLOW
    if call.name == "link":
        return bool(call.flags & AT_SYMLINK_FOLLOW)
    return call.name == "truncate" or call.effect is Effect.METADATA


def will_change(call: Call) -> bool:
    """Tell whether an open makes a file or empties one; the rest of opens change nothing by themselves."""
    assert call.path is not None  # noqa: S101 - the decoder gives every OPEN a path
    try:
        state = os.stat(call.path)
    except OSError:
        return bool(call.flags & O_CREAT) and not call.flags & O_TMPFILE_BIT
    if call.flags & O_EXCL and call.flags & O_CREAT:
        return False
    return bool(call.flags & O_TRUNC) and stat.S_ISREG(state.st_mode)

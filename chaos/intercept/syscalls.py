"""System call numbers and constants of the machines that interception knows: x86_64 and aarch64.

Source: the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`.
"""

from __future__ import annotations

import platform
from typing import Final

from chaos.errors import HarnessError
from chaos.model import Record

AT_FDCWD: Final = -100
AT_EMPTY_PATH: Final = 0x1000
AT_REMOVEDIR: Final = 0x200
AT_SYMLINK_FOLLOW: Final = 0x400
RESOLVE_BENEATH: Final = 0x08
RESOLVE_IN_ROOT: Final = 0x10
O_ACCMODE: Final = 3
O_CREAT: Final = 0o100
O_EXCL: Final = 0o200
O_TRUNC: Final = 0o1000
O_APPEND: Final = 0o2000
O_CLOEXEC: Final = 0o2000000
O_TMPFILE_BIT: Final = 0o20000000
O_PATH: Final = 0o10000000
MAP_SHARED: Final = 1
MAP_ANONYMOUS: Final = 0x20
FICLONE: Final = 0x40049409
FICLONERANGE: Final = 0x4020940D
X32_BIT: Final = 0x40000000

_X86_64: Final = {
    "write": 1, "open": 2, "mmap": 9, "ioctl": 16, "pwrite64": 18, "writev": 20, "sendfile": 40, "fsync": 74,
    "fdatasync": 75, "truncate": 76, "ftruncate": 77, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86,
    "unlink": 87, "symlink": 88, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "utime": 132,
    "mknod": 133, "sync": 162, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197,
    "lremovexattr": 198, "fremovexattr": 199, "io_setup": 206, "exit_group": 231, "utimes": 235, "openat": 257,
    "mkdirat": 258, "mknodat": 259, "fchownat": 260, "futimesat": 261, "unlinkat": 263, "renameat": 264, "linkat": 265,
    "symlinkat": 266, "fchmodat": 268, "splice": 275, "sync_file_range": 277, "utimensat": 280, "fallocate": 285,
    "pwritev": 296, "syncfs": 306, "renameat2": 316, "seccomp": 317, "copy_file_range": 326, "pwritev2": 328,
    "io_uring_setup": 425, "openat2": 437, "pidfd_getfd": 438, "fchmodat2": 452,
}  # fmt: skip

_AARCH64: Final = {
    "io_setup": 0, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
    "fremovexattr": 16, "ioctl": 29, "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37,
    "renameat": 38, "truncate": 45, "ftruncate": 46, "fallocate": 47, "fchmod": 52, "fchmodat": 53, "fchownat": 54,
    "fchown": 55, "openat": 56, "write": 64, "writev": 66, "pwrite64": 68, "pwritev": 70, "sendfile": 71, "splice": 76,
    "sync": 81, "fsync": 82, "fdatasync": 83, "sync_file_range": 84, "utimensat": 88, "exit_group": 94, "mmap": 222,
    "syncfs": 267, "renameat2": 276, "seccomp": 277, "copy_file_range": 285, "pwritev2": 287, "io_uring_setup": 425,
    "openat2": 437, "pidfd_getfd": 438, "fchmodat2": 452,
}  # fmt: skip

# These are answered ENOSYS in the kernel: what they start would write without any further call.
REFUSED: Final = ("io_setup", "io_uring_setup")
# These are held only for some arguments (see `filter`), or not at all.
CONDITIONAL: Final = ("open", "openat", "mmap", "ioctl")
UNFILTERED: Final = ("seccomp", "pidfd_getfd")


class Machine(Record, kw_only=True):
    """One processor architecture: its audit value (linux/audit.h), its calls by name, and by number."""

    name: str
    audit_arch: int
    numbers: dict[str, int]
    names: dict[int, str]


def _machine(name: str, audit_arch: int, numbers: dict[str, int]) -> Machine:
    """Build a machine from its table."""
    return Machine(name=name, audit_arch=audit_arch, numbers=numbers, names={v: k for k, v in numbers.items()})


MACHINES: Final = {
    "x86_64": _machine("x86_64", 0xC000003E, _X86_64),
    "aarch64": _machine("aarch64", 0xC00000B7, _AARCH64),
}


def this_machine() -> Machine:
    """Return the machine that this process runs on; HarnessError where there is no table for it."""
    name = platform.machine()
    if name not in MACHINES:
        message = f"interception knows x86_64 and aarch64, not {name}"
        raise HarnessError(message, hint="use --no-intercept: kills by step line and by time, with weaker guarantees")
    return MACHINES[name]

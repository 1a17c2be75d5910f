"""The seccomp program: which calls are handed to the supervisor, which run on unseen, which are refused.

Classic BPF over `struct seccomp_data` (linux/seccomp.h): number at byte 0, architecture at 4, arguments from 16, eight
bytes each. Opening for reading, private mappings and all else that cannot change a file pass at the kernel's own speed.
"""

from __future__ import annotations

import errno
import struct
from typing import Final

from chaos.intercept.syscalls import (
    CONDITIONAL,
    FICLONE,
    FICLONERANGE,
    MAP_ANONYMOUS,
    MAP_SHARED,
    O_ACCMODE,
    O_CREAT,
    O_TMPFILE_BIT,
    O_TRUNC,
    REFUSED,
    UNFILTERED,
    X32_BIT,
    Machine,
)

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_NOTIFY: Final = 0x7FC00000
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.ENOSYS

_WRITING_OPEN: Final = O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE_BIT


def _argument(index: int) -> int:
    """Return the offset of the low half of an argument (both machines are little-endian)."""
    return 16 + 8 * index


def _instruction(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Pack one `struct sock_filter`."""
    return struct.pack("<HBBI", code, if_true, if_false, k)


def _verdict(value: int) -> bytes:
    """Return the instruction that ends the program with `value`."""
    return _instruction(_RETURN, value)


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """Run `body` (which always returns) if the loaded call number equals `number`, else skip it."""
    return [_instruction(_EQUAL, number, 0, len(body)), *body]


def _opening(flags_index: int) -> list[bytes]:
    """Hold an open whose flags allow it to change something."""
    return [
        _instruction(_LOAD, _argument(flags_index)),
        _instruction(_ANY_BIT, _WRITING_OPEN, 0, 1),
        _verdict(_NOTIFY),
        _verdict(_ALLOW),
    ]


def _mapping() -> list[bytes]:
    """Hold a shared mapping of a file, whatever its protection: mprotect could make it writable later."""
    return [
        _instruction(_LOAD, _argument(3)),
        _instruction(_ANY_BIT, MAP_ANONYMOUS, 2, 0),
        _instruction(_ANY_BIT, MAP_SHARED, 0, 1),
        _verdict(_NOTIFY),
        _verdict(_ALLOW),
    ]


def _cloning() -> list[bytes]:
    """Hold the two ioctl requests that write by reference."""
    return [
        _instruction(_LOAD, _argument(1)),
        _instruction(_EQUAL, FICLONE, 1, 0),
        _instruction(_EQUAL, FICLONERANGE, 0, 1),
        _verdict(_NOTIFY),
        _verdict(_ALLOW),
    ]


def build_filter(machine: Machine) -> bytes:
    """Return the program for `machine` as an array of `struct sock_filter`, 8 bytes each."""
    numbers = machine.numbers
    program = [
        _instruction(_LOAD, 4),
        _instruction(_EQUAL, machine.audit_arch, 1, 0),
        _verdict(_NOTIFY),  # a call of another ABI: seen, let through, and reported
        _instruction(_LOAD, 0),
    ]
    if machine.name == "x86_64":
        program += [_instruction(_AT_LEAST, X32_BIT, 0, 1), _verdict(_NOTIFY)]
    bodies = {"open": _opening(1), "openat": _opening(2), "mmap": _mapping(), "ioctl": _cloning()}
    for name in CONDITIONAL:
        if name in numbers:
            program += _when(numbers[name], bodies[name])
    for name, number in numbers.items():
        if name not in (*CONDITIONAL, *UNFILTERED):
            program += _when(number, [_verdict(_REFUSE if name in REFUSED else _NOTIFY)])
    program.append(_verdict(_ALLOW))
    return b"".join(program)

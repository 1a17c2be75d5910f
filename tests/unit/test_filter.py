"""The seccomp program, run by a small interpreter: what is held, what passes, what is refused, on both machines."""

from __future__ import annotations

import errno
import struct

import pytest

from chaos.intercept.filter import build_filter
from chaos.intercept.syscalls import FICLONE, FICLONERANGE, MACHINES, Machine

ALLOW, NOTIFY, REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000 | errno.ENOSYS
O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_CLOEXEC = 1, 2, 0o100, 0o1000, 0o2000000
O_TMPFILE = 0o20200000
MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS, MAP_SHARED_VALIDATE = 1, 2, 0x20, 3

machines = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


def verdict(machine: Machine, number: int, *arguments: int, arch: int | None = None) -> int:
    """Run the program over one call, as the kernel does, and return its verdict."""
    program = list(struct.iter_unpack("<HBBI", build_filter(machine)))
    padded = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, machine.audit_arch if arch is None else arch, 0, *padded)
    accumulator = position = 0
    while True:
        code, if_true, if_false, k = program[position]
        position += 1
        if code == 0x20:
            accumulator = int.from_bytes(data[k : k + 4], "little")
        elif code == 0x06:
            return int(k)
        else:
            holds = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[code]
            position += if_true if holds else if_false


@machines
@pytest.mark.parametrize(
    "name",
    ["write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "splice", "copy_file_range", "ftruncate",
     "truncate", "fallocate", "renameat2", "linkat", "symlinkat", "unlinkat", "mkdirat", "mknodat", "fchmod",
     "fsetxattr", "utimensat", "fsync", "fdatasync", "sync", "syncfs", "openat2", "exit_group"],
)  # fmt: skip
def test_calls_that_change_files_are_held(machine: Machine, name: str) -> None:
    """Each kind of change is handed to the supervisor, whatever its arguments."""
    assert verdict(machine, machine.numbers[name]) == NOTIFY


@machines
@pytest.mark.parametrize("name", ["io_setup", "io_uring_setup"])
def test_calls_that_would_write_without_further_calls_are_refused(machine: Machine, name: str) -> None:
    """Asynchronous interfaces look as if the kernel did not know them."""
    assert verdict(machine, machine.numbers[name]) == REFUSE


@machines
def test_all_other_calls_pass(machine: Machine) -> None:
    """A number that is in no table runs unseen, at the kernel's own speed."""
    known = set(machine.numbers.values())
    others = [number for number in range(500) if number not in known]
    assert {verdict(machine, number) for number in others} == {ALLOW}
    assert verdict(machine, machine.numbers["pidfd_getfd"]) == verdict(machine, machine.numbers["seccomp"]) == ALLOW


@machines
@pytest.mark.parametrize(
    ("flags", "expected"),
    [(0, ALLOW), (O_CLOEXEC, ALLOW), (O_WRONLY, NOTIFY), (O_RDWR, NOTIFY), (O_CREAT, NOTIFY), (O_TRUNC, NOTIFY),
     (O_TMPFILE, NOTIFY), (O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, NOTIFY)],
)  # fmt: skip
def test_only_opens_that_may_change_something_are_held(machine: Machine, flags: int, expected: int) -> None:
    """Opening for reading passes; the flags are the third argument of openat, the second of open."""
    assert verdict(machine, machine.numbers["openat"], 0, 0, flags) == expected
    if "open" in machine.numbers:
        assert verdict(machine, machine.numbers["open"], 0, flags) == expected


@machines
@pytest.mark.parametrize(
    ("flags", "expected"),
    [(MAP_PRIVATE, ALLOW), (MAP_SHARED, NOTIFY), (MAP_SHARED_VALIDATE, NOTIFY), (MAP_SHARED | MAP_ANONYMOUS, ALLOW),
     (MAP_PRIVATE | MAP_ANONYMOUS, ALLOW)],
)  # fmt: skip
def test_only_shared_mappings_of_files_are_held(machine: Machine, flags: int, expected: int) -> None:
    """A mapping is held whatever its protection, since that can be changed later."""
    assert verdict(machine, machine.numbers["mmap"], 0, 4096, 1, flags, 3) == expected


@machines
@pytest.mark.parametrize(("request_", "expected"), [(FICLONE, NOTIFY), (FICLONERANGE, NOTIFY), (0x5401, ALLOW)])
def test_only_cloning_requests_are_held(machine: Machine, request_: int, expected: int) -> None:
    """Of all ioctl requests only the two that share a file's blocks."""
    assert verdict(machine, machine.numbers["ioctl"], 3, request_) == expected


@machines
def test_calls_of_another_interface_are_seen(machine: Machine) -> None:
    """A 32-bit call is held, whatever its number means there; on x86_64 those with the x32 bit, too."""
    assert verdict(machine, 4, arch=0x40000003) == NOTIFY
    if machine.name == "x86_64":
        assert verdict(machine, 0x40000001) == NOTIFY

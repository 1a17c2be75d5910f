"""Held calls are decoded from registers and memory alone: no process is needed for that."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.intercept.decode import Effect, decode, follows_links, signed, signed64
from chaos.intercept.memory import TargetThread
from chaos.intercept.notify import Notification
from chaos.intercept.syscalls import AT_FDCWD, MACHINES, Machine

CWD = AT_FDCWD & 0xFFFFFFFFFFFFFFFF
STRING, OTHER, VECTOR, HOW = 0x1000, 0x2000, 0x3000, 0x4000

machines = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


class FakeThread(TargetThread):
    """A thread whose memory is a table of addresses."""

    def __init__(self, memory: dict[int, bytes]) -> None:
        """Take the memory."""
        super().__init__(77)
        self.memory = memory

    def read_into(self, address: int, buffer: memoryview) -> int:
        """Read from the table; nothing is readable besides."""
        for start, data in self.memory.items():
            if start <= address < start + len(data):
                part = data[address - start :][: len(buffer)]
                buffer[: len(part)] = part
                return len(part)
        return 0

    def process_id(self) -> int:
        """Return another number than the thread's."""
        return 70


def decoded(machine: Machine, name: str, *arguments: int, **memory: bytes) -> Any:
    """Decode a call with strings at STRING and OTHER, and the vector or structure given."""
    places = {"string": STRING, "other": OTHER, "vector": VECTOR, "how": HOW}
    table = {places[key]: value for key, value in memory.items()}
    padded: Any = (*arguments, *[0] * (6 - len(arguments)))
    notification = Notification(
        id=1, thread_id=77, number=machine.numbers[name], audit_arch=machine.audit_arch, arguments=padded
    )
    return decode(machine, FakeThread(table), notification)


def test_registers_are_read_as_signed_numbers() -> None:
    """The low half of a register is a C int, a whole one a C long."""
    assert (signed(0xFFFFFF9C), signed(0x1_0000_0003), signed64(0xFFFFFFFFFFFFFFFF)) == (-100, 3, -1)


@machines
def test_writes_say_where_and_how_much(machine: Machine) -> None:
    """A plain write goes to the descriptor's own offset, a positioned one to the one given."""
    write = decoded(machine, "write", 5, STRING, 100)
    assert (write.fd, write.size_bytes, write.offset, write.segments) == (5, 100, None, ((STRING, 100),))
    assert decoded(machine, "pwrite64", 5, STRING, 100, 4096).offset == 4096


@machines
def test_vectors_are_gathered(machine: Machine) -> None:
    """The segments are those of the array; an offset of -1 in pwritev2 means the descriptor's own."""
    vector = b"".join(value.to_bytes(8, "little") for value in (STRING, 10, OTHER, 20))
    call = decoded(machine, "pwritev2", 5, VECTOR, 2, 0xFFFFFFFFFFFFFFFF, 0, 0x10, vector=vector)
    assert (call.size_bytes, call.segments, call.offset, call.flags) == (30, ((STRING, 10), (OTHER, 20)), None, 0x10)


@machines
@pytest.mark.parametrize("arguments", [(5, VECTOR, 5000), (5, 0x9999, 2)])
def test_a_vector_that_the_kernel_refuses_is_left_to_it(machine: Machine, arguments: tuple[int, ...]) -> None:
    """Too many segments, or an array that is not readable: the kernel itself gives the error."""
    assert decoded(machine, "writev", *arguments, vector=bytes(16)).effect is Effect.NONE


@machines
@pytest.mark.parametrize(
    ("text", "path"),
    [(b"a/b", b"/proc/77/cwd/a/b"), (b"/a/b", b"/a/b"), (b"/proc/self/fd/3", b"/proc/70/fd/3"),
     (b"/proc/self", b"/proc/70"), (b"/proc/selfish", b"/proc/selfish"), (b"/proc/thread-self/cwd", b"/proc/77/cwd"),
     (b"/dev/fd/3", b"/proc/77/fd/3"),
     (b"/dev/stdout", b"/proc/77/fd/1"), (b"\xff\n", b"/proc/77/cwd/\xff\n")],
)  # fmt: skip
def test_paths_mean_what_they_mean_to_the_target(machine: Machine, text: bytes, path: bytes) -> None:
    """Relative paths start in the target's folder, and its aliases of itself are itself."""
    assert decoded(machine, "mkdirat", CWD, STRING, 0o755, string=text + b"\0").path == path


@machines
@pytest.mark.parametrize("folder", [CWD, 999])
def test_an_empty_path_or_a_wrong_folder_is_left_to_the_kernel(machine: Machine, folder: int) -> None:
    """What the kernel refuses without looking at any file is not carried out for the target."""
    text = b"\0" if folder == CWD else b"x\0"
    for name, arguments in (("mkdirat", (folder, STRING, 0)), ("openat", (folder, STRING, 0o101, 0))):
        call = decoded(machine, name, *arguments, string=text)
        assert call.path is None or call.effect is Effect.NONE
    assert decoded(machine, "renameat2", folder, STRING, CWD, STRING, 0, string=text).effect is Effect.NONE


@machines
def test_the_two_names_of_a_rename_and_its_flags_are_read(machine: Machine) -> None:
    """Old and new name, and the flags of renameat2."""
    call = decoded(machine, "renameat2", CWD, STRING, CWD, OTHER, 2, string=b"/old\0", other=b"/new\0")
    assert (call.name, call.path, call.new_path, call.flags) == ("rename", b"/old", b"/new", 2)


@machines
def test_a_symlink_has_its_content_first(machine: Machine) -> None:
    """What the link says is no path of the target's and stays as it is."""
    call = decoded(machine, "symlinkat", STRING, CWD, OTHER, string=b"say\0", other=b"/new\0")
    assert (call.path, call.new_path) == (b"say", b"/new")


@machines
def test_metadata_of_a_descriptor_is_told_from_that_of_a_path(machine: Machine) -> None:
    """Utimensat without a path, and with an empty one, is about the descriptor."""
    assert (decoded(machine, "utimensat", 5, 0).fd, decoded(machine, "utimensat", 5, STRING, string=b"\0").fd) == (5, 5)
    assert decoded(machine, "utimensat", CWD, STRING, string=b"/a\0").path == b"/a"


@machines
def test_openat2_keeps_its_rules(machine: Machine) -> None:
    """The rules for the way hold from the folder on; a read-only open is none of ours."""
    how = b"".join(value.to_bytes(8, "little") for value in (0o101, 0o640, 0x10))
    call = decoded(machine, "openat2", CWD, STRING, HOW, 24, string=b"/a\0", how=how)
    assert (call.flags, call.mode, call.resolve, call.text) == (0o101, 0o640, 0x10, b"/a")
    assert (call.base, call.path) == (b"/proc/77/cwd", b"/proc/77/cwd/a")
    assert decoded(machine, "openat2", CWD, STRING, HOW, 24, string=b"/a\0", how=bytes(24)).effect is Effect.NONE


@machines
@pytest.mark.parametrize(("flags", "expected"), [(0o101, True), (0o301, False), (0o1, True)])
def test_links_are_followed_as_the_kernel_does(machine: Machine, flags: int, *, expected: bool) -> None:
    """An exclusive creation does not follow a link, a plain one does."""
    assert follows_links(decoded(machine, "openat", CWD, STRING, flags, 0, string=b"/a\0")) is expected

"""Change a folder in a hundred ways drawn from a seed: `python anything.py OUT NUMBERS SEED`.

NUMBERS is a JSON object of system call numbers. Calls that fail are part of it.
"""

# ruff: noqa: ANN201, PTH104, PTH108, PTH211 - written as a user writes
# ruff: noqa: PTH101, PTH102, PTH106, PTH118 - likewise

import ctypes
import json
import os
import random
import sys

out, numbers, draw = sys.argv[1], json.loads(sys.argv[2]), random.Random(int(sys.argv[3]))
libc = ctypes.CDLL(None)
AT_FDCWD, AT_EMPTY_PATH, EXCHANGE = -100, 0x1000, 2
NAMES = [*"abcd", "f", "f/a", "f/b", "f/g", "f/g/a", "g", "g/a"]
FLAGS = (0, os.O_TRUNC, os.O_APPEND, os.O_EXCL, os.O_APPEND | os.O_TRUNC, os.O_DSYNC)
open_files = []


def name():
    """Return the path of some name."""
    return os.path.join(out, draw.choice(NAMES))


def data():
    """Return some bytes, zeros now and then."""
    size = draw.choice((1, 10, 4096, 5000, 9000))
    return bytes(size) if draw.random() < 0.2 else draw.randbytes(size)


def place():
    """Return some offset, often near a page's end."""
    return draw.choice((0, 4095, 4096, 8192, draw.randrange(30000)))


def file():
    """Return a file that is open."""
    return draw.choice(open_files)


def start():
    """Open a file, or make one without a name."""
    if draw.random() < 0.2:
        open_files.append(os.open(out, os.O_TMPFILE | os.O_RDWR, 0o600))
    else:
        open_files.append(os.open(name(), os.O_RDWR | os.O_CREAT | draw.choice(FLAGS), draw.choice((0o600, 0o644))))


def end():
    """Close a file."""
    fd = file()
    open_files.remove(fd)
    os.close(fd)


def exchange():
    """Let two names change places."""
    libc.renameat2(AT_FDCWD, os.fsencode(name()), AT_FDCWD, os.fsencode(name()), EXCHANGE)


def publish():
    """Give an open file a name."""
    libc.linkat(file(), b"", AT_FDCWD, os.fsencode(name()), AT_EMPTY_PATH)


def allocate():
    """Change a file's room: set aside, punch, zero, collapse, insert."""
    mode, unit = draw.choice(((0, 1), (1, 1), (3, 1), (16, 1), (17, 1), (8, 4096), (32, 4096)))
    start, length = place() // unit * unit, (draw.randrange(9000) // unit + 1) * unit
    libc.syscall(numbers["fallocate"], file(), mode, ctypes.c_long(start), ctypes.c_long(length))


def splice():
    """Let the kernel move bytes out of a pipe."""
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, draw.randbytes(700))
        os.splice(read_end, file(), 700, offset_dst=draw.choice((None, place())))
    finally:
        os.close(read_end)
        os.close(write_end)


WAYS = (
    (6, start),
    (2, end),
    (4, lambda: os.write(file(), data())),
    (3, lambda: os.pwrite(file(), data(), place())),
    (1, lambda: os.writev(file(), [data(), data()])),
    (1, lambda: os.pwritev(file(), [data()], place(), draw.choice((0, os.RWF_APPEND, os.RWF_DSYNC)))),
    (1, lambda: os.lseek(file(), place(), os.SEEK_SET)),
    (2, lambda: os.ftruncate(file(), place())),
    (1, lambda: os.truncate(name(), place())),
    (2, allocate),
    (1, lambda: os.sendfile(file(), file(), place(), 5000)),
    (1, lambda: os.copy_file_range(file(), file(), 5000, place(), draw.choice((None, place())))),
    (1, splice),
    (3, lambda: os.rename(name(), name())),
    (1, exchange),
    (2, lambda: os.link(name(), name(), follow_symlinks=draw.random() < 0.5)),
    (2, publish),
    (2, lambda: os.unlink(name())),
    (2, lambda: os.mkdir(name())),
    (1, lambda: os.rmdir(name())),
    (1, lambda: os.symlink(draw.choice(NAMES), name())),
    (1, lambda: os.mkfifo(name()) if draw.random() < 0.3 else os.mknod(name())),
    (1, lambda: os.chmod(name(), draw.choice((0o700, 0o755)))),
    (1, lambda: os.fchmod(file(), draw.choice((0o600, 0o640)))),
    (1, lambda: os.utime(file(), (draw.randrange(9), draw.randrange(9)))),
    (1, lambda: os.utime(name(), (5, 6), follow_symlinks=False)),
    (1, lambda: os.fsync(file())),
)

open_files.append(os.open(os.path.join(out, "a"), os.O_RDWR | os.O_CREAT))
for _ in range(100):
    (way,) = draw.choices([way for _, way in WAYS], [weight for weight, _ in WAYS])
    try:
        way()
    except (OSError, IndexError):
        continue

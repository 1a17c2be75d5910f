"""Change a folder in all the ways that are recorded: `python recorded.py OUT NUMBERS HOW...`.

NUMBERS is a JSON object of system call numbers; each HOW is the name of a function below. Every run makes the same
calls in the same order.
"""

# ruff: noqa: ANN001, ANN002, ANN201, ANN202, S103 - written as a user writes
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH105, PTH106, PTH108, PTH110, PTH118, PTH120, PTH123, PTH211 - likewise

import ctypes
import json
import mmap
import os
import signal
import sys
import threading

out, numbers = sys.argv[1], json.loads(sys.argv[2])
outside = os.path.join(os.path.dirname(out), "outside")
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
AT_FDCWD, AT_EMPTY_PATH, AT_SYMLINK_FOLLOW, EXCHANGE = -100, 0x1000, 0x400, 2
KEEP_SIZE, PUNCH_HOLE, COLLAPSE, ZERO_RANGE, INSERT = 1, 2, 8, 16, 32


def raw(name, *arguments):
    """Make one system call."""
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(numbers[name]), *converted)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def at(name):
    """Return the path of a name in the folder."""
    return os.path.join(out, name)


def some(size, start=0):
    """Return bytes that differ from page to page."""
    return b"".join(b"%07d\n" % (number + start) for number in range(size // 8 + 1))[:size]


def write(name, data):
    """Write a whole file in one call."""
    fd = os.open(at(name), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, data)
    os.close(fd)


def nameless():
    """Make files without a name that get one, by both ways; one is never written before, and numbers are used again."""
    for number, way in enumerate(("proc", "empty", "empty")):
        write("gone", some(5000, 77))
        os.unlink(at("gone"))
        fd = os.open(out, os.O_TMPFILE | os.O_RDWR, 0o640)
        if number < 2:
            os.write(fd, some(6000, number))
        new = os.fsencode(at(f"named{number}"))
        if way == "proc":
            old = f"/proc/self/fd/{fd}".encode()
            raw("linkat", AT_FDCWD, old, AT_FDCWD, new, AT_SYMLINK_FOLLOW)
        else:
            raw("linkat", fd, b"", AT_FDCWD, new, AT_EMPTY_PATH)
        os.write(fd, b"and more")
        os.close(fd)


def replaced():
    """Save by a temporary name over an existing file, and keep the one before by a hard link."""
    for number in range(3):
        write("state.tmp", some(9000 + number, number))
        if os.path.exists(at("state")):
            if os.path.exists(at("state.prev")):
                os.unlink(at("state.prev"))
            os.link(at("state"), at("state.prev"))
        os.replace(at("state.tmp"), at("state"))
    os.rename(at("state"), at("same"))
    if os.path.exists(at("twin")):
        os.unlink(at("twin"))
    os.link(at("same"), at("twin"))
    os.rename(at("same"), at("twin"))


def unlinked():
    """Write to files that have no name any more, or one name less, while others take their names."""
    fd = os.open(at("open"), os.O_RDWR | os.O_CREAT, 0o600)
    os.write(fd, some(5000))
    os.link(at("open"), at("kept"))
    os.unlink(at("open"))
    os.pwrite(fd, b"after", 4094)
    os.ftruncate(fd, 4500)
    write("open", b"another")
    os.unlink(at("kept"))
    os.write(fd, some(9000, 3))
    write("kept", some(100, 8))
    os.fchmod(fd, 0o640)
    os.close(fd)
    write("open", some(8193, 5))


def appended():
    """Append, at a descriptor that stands elsewhere, and by flags for one call."""
    fd = os.open(at("log"), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    for number in range(3):
        os.write(fd, some(3000, number))
        os.lseek(fd, 0, os.SEEK_SET)
    os.pwrite(fd, b"appended all the same", 5)
    os.close(fd)
    fd = os.open(at("log"), os.O_RDWR)
    os.pwritev(fd, [b"once ", b"more"], 0, os.RWF_APPEND)
    os.pwritev(fd, [b"durably"], 100, os.RWF_DSYNC)
    os.close(fd)
    os.close(os.open(at("log"), os.O_WRONLY | os.O_SYNC | os.O_TRUNC))


def holes():
    """Make holes in all ways, and take them away again."""
    fd = os.open(at("holes"), os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, some(10000))
    os.lseek(fd, 20000, os.SEEK_SET)
    os.write(fd, some(9000, 5))
    os.ftruncate(fd, 40000)
    os.ftruncate(fd, 25001)
    os.ftruncate(fd, 30000)
    raw("fallocate", fd, PUNCH_HOLE | KEEP_SIZE, 3000, 5000)
    raw("fallocate", fd, 0, 28000, 8000)
    raw("fallocate", fd, KEEP_SIZE, 50000, 4096)
    raw("fallocate", fd, ZERO_RANGE, 21000, 500)
    raw("fallocate", fd, COLLAPSE, 4096, 4096)
    raw("fallocate", fd, INSERT, 8192, 8192)
    os.pwrite(fd, bytes(5000), 20000)
    os.truncate(at("holes"), 12345)
    os.fsync(fd)
    os.fdatasync(fd)
    os.close(fd)


def synced():
    """Make everything durable."""
    write("some", some(10))
    os.sync()
    write("more", some(10))


def disordered():
    """Write out of order, gathered, over what is there, and more than one buffer at once."""
    fd = os.open(at("parts"), os.O_RDWR | os.O_CREAT, 0o644)
    for start in (20000, 0, 9000, 4096, 18000):
        os.pwrite(fd, some(5000, start), start)
    os.writev(fd, [some(100), b"", some(8200, 3)])
    os.write(fd, b"")
    os.pwritev(fd, [some(4096, 9), some(4097, 8)], 4090)
    os.close(fd)
    write("large", some((1 << 20) + 9000))
    fd = os.open(at("large"), os.O_RDWR)
    os.pwrite(fd, some(8192, 1), (1 << 20) - 4000)
    os.close(fd)


def interleaved():
    """Two threads that take turns, each with a file of its own."""
    turns = [threading.Event(), threading.Event()]

    def save(number):
        fd = -1
        for part in range(3):
            turns[number].wait()
            turns[number].clear()
            if fd < 0:
                fd = os.open(at(f"thread{number}.tmp"), os.O_RDWR | os.O_CREAT, 0o644)
            os.write(fd, some(5000, part))
            if part == 2:
                os.rename(at(f"thread{number}.tmp"), at(f"thread{number}"))
                os.chmod(at(f"thread{number}"), 0o600 + number)
            turns[1 - number].set()

    threads = [threading.Thread(target=save, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    turns[0].set()
    for thread in threads:
        thread.join()


def exchanged():
    """Let names change places: two files, a file and a folder."""
    write("left", some(5000))
    write("right", some(100, 4))
    raw("renameat2", AT_FDCWD, os.fsencode(at("left")), AT_FDCWD, os.fsencode(at("right")), EXCHANGE)
    os.mkdir(at("place"), 0o750)
    write("place/inner", b"inner")
    raw("renameat2", AT_FDCWD, os.fsencode(at("left")), AT_FDCWD, os.fsencode(at("place")), EXCHANGE)


def folders():
    """Make, fill, move and remove folders, odd names among them."""
    os.makedirs(at("checkpoint.tmp/shard"))
    write("checkpoint.tmp/shard/a", some(4097))
    fd = os.open(at("checkpoint.tmp/b\\udc80"), os.O_RDWR | os.O_CREAT, 0o644)
    os.rename(at("checkpoint.tmp"), at("checkpoint"))
    os.write(fd, some(10))
    os.close(fd)
    odd = os.fsencode(at("checkpoint")) + b"/\xff\\ odd\n"
    os.close(os.open(odd, os.O_WRONLY | os.O_CREAT, 0o644))
    os.rename(at("checkpoint/shard"), at("shard"))
    os.unlink(odd)
    os.unlink(at("checkpoint/b\\udc80"))
    os.rmdir(at("checkpoint"))
    os.mkdir(at("empty"))
    os.rename(at("shard"), at("empty"))


def transferred():
    """Move bytes between descriptors; one of them, a pipe, by the kernel alone."""
    write("source", some(20000))
    source = os.open(at("source"), os.O_RDONLY)
    target = os.open(at("target"), os.O_RDWR | os.O_CREAT, 0o644)
    os.sendfile(target, source, 100, 9000)
    os.copy_file_range(source, target, 3000, 10, 20000)
    os.copy_file_range(source, target, 500)
    read_end, write_end = os.pipe()
    os.write(write_end, some(2000))
    os.splice(read_end, target, 700)
    os.splice(read_end, target, 700, offset_dst=30000)
    os.lseek(target, 50, os.SEEK_SET)
    os.write(target, b"at last")


def described():
    """Change permissions, times and attributes, links and their texts, FIFOs."""
    write("plain", some(50))
    os.chmod(at("plain"), 0o604)
    fd = os.open(at("plain"), os.O_RDWR)
    os.fchmod(fd, 0o640)
    os.utime(fd, (3, 4))
    os.write(fd, b"later")
    os.utime(at("plain"), (1, 2))
    os.chmod(at("missing"), 0o600) if os.path.exists(at("missing")) else None
    os.symlink("plain", at("soft"))
    os.symlink("nowhere", at("dangling"))
    os.close(os.open(at("dangling"), os.O_WRONLY | os.O_CREAT, 0o644))
    os.close(os.open(at("soft"), os.O_WRONLY | os.O_TRUNC))
    os.link(at("soft"), at("soft2"), follow_symlinks=False)
    os.mkfifo(at("fifo"), 0o600)
    os.rename(at("soft2"), at("fifo"))
    os.mknod(at("node"), 0o100640)
    os.mkdir(at("closed"))
    os.chmod(at("closed"), 0o700)
    os.unlink(at("dangling"))
    os.mkdir(at("setgid"))
    os.chmod(at("setgid"), 0o2755)


def across():
    """Bring names in from outside of the folder, and take them out."""
    os.makedirs(os.path.join(outside, "deep"))
    for name in ("file", "deep/file"):
        with open(os.path.join(outside, name), "wb") as file:
            file.write(some(5000))
    os.rename(os.path.join(outside, "file"), at("arrived"))
    os.rename(os.path.join(outside, "deep"), at("deep"))
    os.rename(at("arrived"), os.path.join(outside, "left"))
    with open(os.path.join(outside, "left"), "ab") as file:
        file.write(b"changed outside")
    os.link(os.path.join(outside, "left"), at("linked"))
    os.link(at("linked"), os.path.join(outside, "twin"))
    os.rename(at("deep"), os.path.join(outside, "deep"))
    write("inside", b"i")
    new = os.fsencode(os.path.join(outside, "left"))
    raw("renameat2", AT_FDCWD, os.fsencode(at("inside")), AT_FDCWD, new, EXCHANGE)


def in_place():
    """Write over the one checkpoint, and remember how often."""
    fd = os.open(at("only"), os.O_RDWR | os.O_CREAT, 0o644)
    count = int(os.pread(fd, 8, 0) or b"0")
    os.pwrite(fd, b"%07d\n" % (count + 1) + some(9000, count), 0)
    os.close(fd)


def gigabytes():
    """Write 2 GB, no two pages of it alike in more than what they are."""
    buffer = bytearray(some(8 << 20))
    fd = os.open(at("large"), os.O_RDWR | os.O_CREAT, 0o644)
    for number in range(256):
        for start in range(0, len(buffer), 1 << 20):
            buffer[start : start + 8] = b"%07d\n" % (number * 8 + start)
        os.write(fd, buffer)
    os.pwrite(fd, b"end", 5)
    os.close(fd)


def mapped():
    """Change a file through a shared mapping, which makes no call."""
    write("mapped", some(8192))
    fd = os.open(at("mapped"), os.O_RDWR)
    with mmap.mmap(fd, 8192) as memory:
        memory[100:105] = b"quiet"
    os.close(fd)
    write("seen", b"seen")


def killed():
    """Leave a child behind that ends in the middle of what it does, and go on."""
    child = os.fork()
    if child == 0:
        write("child", some(10))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    write("parent", some(10))


for how in sys.argv[3:]:
    globals()[how]()

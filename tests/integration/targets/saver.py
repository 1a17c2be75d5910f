"""Save a few times as many programs do, and print so: `python saver.py OUT HOW`.

HOW says who writes: `main`, `forked`, `program` (a child process), `native` (the C library), `threads` (two at a time,
each its own file). Every byte follows from its offset in the file alone, so that a test can work out what any part of a
save leaves.
"""

# ruff: noqa: ANN001, ANN201, PTH105, PTH108, PTH110, PTH118, S607 - written as a user writes

import ctypes
import os
import subprocess
import sys
import threading

out, how = sys.argv[1], sys.argv[2]
SIZE = 3 * 4096 + 500
CONTENT = bytes(offset // 512 % 251 for offset in range(64 * 4096))


def write_main(path):
    """Write with several kinds of calls."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, CONTENT[:SIZE])
    os.writev(fd, [CONTENT[SIZE : SIZE + 100], CONTENT[SIZE + 100 : SIZE + 700]])
    os.pwrite(fd, CONTENT[20000:25000], 20000)
    os.ftruncate(fd, 24000)
    os.fsync(fd)
    os.close(fd)


def write_native(path):
    """Write through the C library's buffers."""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fopen(path.encode(), b"wb"))
    for start in range(0, SIZE, 1000):
        libc.fwrite(CONTENT[start : min(start + 1000, SIZE)], 1, min(1000, SIZE - start), file)
    libc.fclose(file)


def write_forked(path):
    """Write in a child."""
    child = os.fork()
    if child == 0:
        write_main(path)
        os._exit(0)
    os.waitpid(child, 0)


def write_program(path):
    """Write in another program."""
    subprocess.run(["dd", "status=none", "bs=5000", f"of={path}"], input=CONTENT[:SIZE], check=True)


def publish(name):
    """Put a written file in place and keep the one before."""
    path = os.path.join(out, name)
    if os.path.exists(path):
        if os.path.exists(path + ".prev"):
            os.unlink(path + ".prev")
        os.link(path, path + ".prev")
    os.replace(path + ".tmp", path)
    folder = os.open(out, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def save(name, write):
    """Save one file durably."""
    write(os.path.join(out, name + ".tmp"))
    publish(name)


def save_in_threads():
    """Save two files at the same time, each in a thread of its own."""
    start = threading.Barrier(2)
    threads = [
        threading.Thread(target=lambda name=name: (start.wait(), save(name, write_main))) for name in ("left", "right")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


for step in range(1, 4):
    os.write(1, b"step %d loss 0.5\n" % step)
    if how == "threads":
        save_in_threads()
    else:
        save(
            "state", {"main": write_main, "native": write_native, "forked": write_forked, "program": write_program}[how]
        )
    os.write(1, b"saved step %d\n" % step)

"""Change files in ways that no call shows, and in ways that only look like it: `python unseen.py OUT HOW`."""


# ruff: noqa: PTH102, PTH104, PTH108, PTH118, PTH123, PTH211, S108 - written as a user writes

import mmap
import os
import sys

out, how = sys.argv[1], sys.argv[2]
path = os.path.join(out, "state")
with open(path, "wb") as file:
    file.write(b"a" * 8192)
if how == "mapped":
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[100:200] = b"b" * 100
elif how == "mapped_then_written":
    with open(path, "r+b", buffering=0) as file, mmap.mmap(file.fileno(), 0) as view:
        view[100:200] = b"b" * 100
        file.write(b"c")
elif how == "mapped_to_read":
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ) as view:
        assert view[:2] == b"aa"
elif how == "mapped_privately":
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE) as view:
        view[100:200] = b"b" * 100
elif how == "waits":
    os.mkfifo(os.path.join(out, "go"))
    with open(os.path.join(out, "go"), "rb") as signal:
        signal.read()
elif how == "times":
    os.utime(path, (1, 2))
    with open(path, "r+b") as file:
        os.utime(file.fileno(), (3, 4))
elif how == "link_from_outside":
    link = os.path.join(os.environ["TMPDIR"], "link")
    os.symlink(path, link)
    with open(link, "wb") as file:
        file.write(b"c" * 10)
elif how == "memory":
    os.write(os.memfd_create("scratch"), b"d" * 100)
elif how == "shared_memory":
    for name in ("old", "new", "renamed"):
        with open(f"/dev/shm/ninelives-test-{name}", "ab") as file:
            file.write(b"e" * 100)
    os.rename("/dev/shm/ninelives-test-renamed", "/dev/shm/ninelives-test-moved")
    os.mkdir("/dev/shm/ninelives-test-folder")
    with open("/dev/shm/ninelives-test-folder/file", "wb") as file:
        file.write(b"g")
elif how == "number_used_again":
    scratch = os.path.join(out, "scratch")
    with open(scratch, "w+b") as file:
        file.write(b"a" * 8192)
        file.flush()
        with mmap.mmap(file.fileno(), 0) as view:
            view[0] = 98
    os.unlink(scratch)
    for name in ("one", "two"):
        with open(os.path.join(out, name), "wb") as file:
            file.write(b"f")

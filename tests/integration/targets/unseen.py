"""Change files in ways that no call shows, and in ways that only look like it: `python unseen.py OUT HOW`."""


# ruff: noqa: PTH102, PTH103, PTH104, PTH108, PTH118, PTH123, PTH211, S108 - written as a user writes

import ctypes
import mmap
import os
import sys


def wait() -> None:
    """Wait until somebody outside has had a turn."""
    os.mkfifo(os.path.join(out, "go"))
    with open(os.path.join(out, "go"), "rb") as signal:
        signal.read()


def stage(name: str) -> str:
    """Write a file outside of the folder, and return its path."""
    made = os.path.join(os.environ["TMPDIR"], name)
    with open(made, "wb") as staged:
        staged.write(b"h" * 5000)
    return made


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
    wait()
elif how == "moved_in":
    os.rename(stage("stage"), os.path.join(out, "moved"))
elif how == "moved_in_waits":
    os.rename(stage("stage"), os.path.join(out, "moved"))
    wait()
elif how == "moved_in_again":
    os.rename(path, os.path.join(os.environ["TMPDIR"], "stage"))
    os.rename(stage("stage"), path)
elif how == "moved_in_mapped":
    with open(stage("stage"), "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[0] = 98
        os.rename(file.name, os.path.join(out, "moved"))
        view[1] = 98
elif how == "folder_moved_in":
    folder = os.path.join(os.environ["TMPDIR"], "folder")
    os.makedirs(os.path.join(folder, "below"))
    stage("folder/one")
    stage("folder/below/two")
    os.rename(folder, os.path.join(out, "folder"))
elif how == "linked_in":
    os.link(stage("stage"), os.path.join(out, "linked"))
elif how == "linked_twice":
    os.link(stage("stage"), os.path.join(out, "moved"))
    wait()
    os.link(os.path.join(os.environ["TMPDIR"], "stage"), os.path.join(out, "again"))
elif how == "swapped_in":
    other = stage("stage").encode()
    rename_exchange = 2
    assert ctypes.CDLL(None).renameat2(-100, path.encode(), -100, other, rename_exchange) == 0
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

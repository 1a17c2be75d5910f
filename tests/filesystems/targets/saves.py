"""Ways to save a checkpoint: the old one is made and everything synced, then the new one is saved, one way or another.

python saves.py OUT WAY SIZE_BYTES SEED
"""

# ruff: noqa: PTH102, PTH104, PTH105, PTH108, PTH123, PTH211 - the calls themselves are what this is about

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress

OUT, WAY, SIZE, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
RNG = random.Random(SEED)
AFRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
NUM_WRITES = 3


def content() -> bytes:
    """Return bytes that no other file has."""
    return RNG.randbytes(SIZE)


def write_all(fd: int, data: bytes) -> None:
    """Write in a few parts that begin inside pages."""
    part = len(data) // NUM_WRITES + 5
    for start in range(0, len(data), part):
        assert os.write(fd, data[start : start + part]) == len(data[start : start + part])


def save(name: str, *, flags: int = AFRESH, sync: Callable[[int], object] = lambda _: None) -> None:
    """Write new content to a file, then call `sync` on it."""
    fd = os.open(name, flags, 0o644)
    write_all(fd, content())
    sync(fd)
    os.close(fd)


def sync_folder(name: str = ".") -> None:
    """Make a folder's names durable."""
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def syncfs(fd: int) -> None:
    """Make the whole file system durable."""
    assert ctypes.CDLL(None).syncfs(fd) == 0


def settle() -> None:
    """Make everything durable: by POSIX, which lets sync return early, each thing by itself; and all of it at once."""
    for base, _, names in os.walk("."):
        for name in names:
            with open(f"{base}/{name}", "rb") as file:
                os.fsync(file.fileno())
        sync_folder(base)
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    syncfs(fd)
    os.close(fd)


def start_writeback(fd: int) -> None:
    """Write the data to the disk, and none of what leads to it: sync_file_range(2) promises nothing."""
    everything = ctypes.c_int64(0), ctypes.c_int64(0), ctypes.c_uint(7)
    assert ctypes.CDLL(None).sync_file_range(fd, *everything) == 0


def preallocated(fd: int) -> None:
    """Set room aside, and write its last third before its first two."""
    data = content()
    os.posix_fallocate(fd, 0, SIZE)
    os.pwrite(fd, data[2 * SIZE // 3 :], 2 * SIZE // 3)
    os.pwrite(fd, data[: 2 * SIZE // 3], 0)


def with_holes(fd: int) -> None:
    """Set the length first, then write a middle and an end."""
    os.ftruncate(fd, SIZE)
    os.pwrite(fd, content()[: SIZE // 4], SIZE // 3)
    os.pwrite(fd, content()[: SIZE // 5], SIZE - SIZE // 5)


def filled(name: str, fill: Callable[[int], None], *, sync: Callable[[int], object] = lambda _: None) -> None:
    """Make a file anew with what `fill` writes."""
    fd = os.open(name, AFRESH, 0o644)
    fill(fd)
    sync(fd)
    os.close(fd)


def replace(name: str, *, sync: Callable[[int], object] = lambda _: None) -> None:
    """Save under a temporary name, and put it in place of the old one."""
    save(name + ".tmp", sync=sync)
    os.replace(name + ".tmp", name)


def point_to(name: str) -> None:
    """Let the link `latest` lead to another file, by a rename."""
    os.symlink(name, "latest.tmp")
    os.replace("latest.tmp", "latest")


def save_folder(name: str, *, sync: Callable[[int], object] = lambda _: None) -> None:
    """Save two files in a folder of their own."""
    os.mkdir(name)
    save(name + "/weights.pt", sync=sync)
    save(name + "/optimizer.pt", sync=sync)


def mark(name: str, *, sync: Callable[[int], object] = lambda _: None) -> None:
    """Put a marker into a folder: it is complete."""
    fd = os.open(name + "/complete", AFRESH, 0o644)
    os.write(fd, b"yes")
    sync(fd)
    os.close(fd)


def safetensors(name: str) -> None:
    """Write a file as safetensors does: a length, a header, the data, under a random name, then a rename."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [SIZE], "data_offsets": [0, SIZE]}}).encode()
    temporary = f".tmp{RNG.getrandbits(32):08x}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, len(header).to_bytes(8, "little"))
    os.write(fd, header)
    write_all(fd, content())
    os.close(fd)
    os.replace(temporary, name)


def relinked(name: str) -> None:
    """Save under a temporary name, and give it the name by a link."""
    save(name + ".tmp")
    os.unlink(name)
    os.link(name + ".tmp", name)
    os.unlink(name + ".tmp")


def appended() -> None:
    """Add to the end of a file, in three writes."""
    fd = os.open("log", os.O_WRONLY | os.O_APPEND)
    write_all(fd, content())
    os.close(fd)


def overwritten(*, sync: Callable[[int], object] = lambda _: None) -> None:
    """Write over a file's bytes without making it empty first."""
    save("model.pt", flags=os.O_WRONLY, sync=sync)


def rotated_by_rename() -> None:
    """Move the old one aside, and save under its name."""
    os.rename("model.pt", "model.pt.old")
    save("model.pt")


def moved_folder(*, sync: Callable[[int], object], has_sync_of_folders: bool) -> None:
    """Save a folder under a temporary name, and move it to its own."""
    save_folder("step-2.tmp", sync=sync)
    if has_sync_of_folders:
        sync_folder("step-2.tmp")
    os.rename("step-2.tmp", "step-2")
    if has_sync_of_folders:
        sync_folder()


def one_after_the_other(*steps: Callable[[], object]) -> Callable[[], object]:
    """Return a function that does all of the steps."""

    def do() -> None:
        for step in steps:
            step()

    return do


def old_model() -> None:
    """Make the old checkpoint of the ways that keep one name."""
    save("model.pt")


def old_step() -> None:
    """Make the old checkpoint of the ways that make a new name each time."""
    save("step-1.pt")


def old_pair() -> None:
    """Make the two old files."""
    save("weights.pt")
    save("resume.pt")


def old_folder() -> None:
    """Make the old folder."""
    save_folder("step-1")
    mark("step-1")


def old_latest() -> None:
    """Make the old checkpoint, and a link to it."""
    save("step-1.pt")
    os.symlink("step-1.pt", "latest")


def replaced_pair(sync: Callable[[int], object] = lambda _: None) -> None:
    """Replace two files, one after the other."""
    replace("weights.pt", sync=sync)
    replace("resume.pt", sync=sync)


def kept(name: str, *, other: str) -> None:
    """Keep the old checkpoint under another name, by a link, then replace it."""
    with suppress(FileNotFoundError):
        os.unlink(other)
    os.link(name, other)
    replace(name, sync=os.fsync)
    sync_folder()


Do = Callable[[], object]
WAYS: dict[str, tuple[Do, Do]] = {
    "in_place": (old_model, lambda: save("model.pt")),
    "in_place_fsync": (old_model, lambda: save("model.pt", sync=os.fsync)),
    "overwrite": (old_model, overwritten),
    "overwrite_fdatasync": (old_model, lambda: overwritten(sync=os.fdatasync)),
    "rename": (old_model, lambda: replace("model.pt")),
    "rename_range": (old_model, lambda: replace("model.pt", sync=start_writeback)),
    "rename_fsync": (old_model, lambda: replace("model.pt", sync=os.fsync)),
    "rename_folder_fsync": (old_model, one_after_the_other(lambda: replace("model.pt"), sync_folder)),
    "rename_durable": (old_model, one_after_the_other(lambda: replace("model.pt", sync=os.fsync), sync_folder)),
    "rename_fdatasync": (old_model, one_after_the_other(lambda: replace("model.pt", sync=os.fdatasync), sync_folder)),
    "rename_syncfs": (old_model, one_after_the_other(lambda: replace("model.pt", sync=syncfs), sync_folder)),
    "keep_previous": (old_model, lambda: kept("model.pt", other="model.pt.prev")),
    "new_name": (old_step, lambda: save("step-2.pt")),
    "new_name_fsync": (old_step, lambda: save("step-2.pt", sync=os.fsync)),
    "new_name_folder_fsync": (old_step, one_after_the_other(lambda: save("step-2.pt"), sync_folder)),
    "new_name_durable": (old_step, one_after_the_other(lambda: save("step-2.pt", sync=os.fsync), sync_folder)),
    "new_name_sync": (old_step, one_after_the_other(lambda: save("step-2.pt"), os.sync)),
    "o_sync": (old_step, lambda: save("step-2.pt", flags=AFRESH | os.O_SYNC)),
    "o_dsync": (old_step, lambda: save("step-2.pt", flags=AFRESH | os.O_DSYNC)),
    "preallocated": (old_step, lambda: filled("step-2.pt", preallocated)),
    "holes": (old_step, lambda: filled("step-2.pt", with_holes, sync=os.fdatasync)),
    "two_files": (old_pair, replaced_pair),
    "two_files_durable": (old_pair, one_after_the_other(lambda: replaced_pair(os.fsync), sync_folder)),
    "folder_marker": (old_folder, one_after_the_other(lambda: save_folder("step-2"), lambda: mark("step-2"))),
    "folder_marker_fsync": (
        old_folder,
        one_after_the_other(lambda: save_folder("step-2", sync=os.fsync), lambda: mark("step-2", sync=os.fsync)),
    ),
    "folder_moved": (old_folder, lambda: moved_folder(sync=lambda _: None, has_sync_of_folders=False)),
    "folder_moved_durable": (old_folder, lambda: moved_folder(sync=os.fsync, has_sync_of_folders=True)),
    "rotate_unlink": (old_step, one_after_the_other(lambda: save("step-2.pt"), lambda: os.unlink("step-1.pt"))),
    "rotate_unlink_fsync": (
        old_step,
        one_after_the_other(lambda: save("step-2.pt", sync=os.fsync), lambda: os.unlink("step-1.pt"), sync_folder),
    ),
    "rotate_rename": (old_model, rotated_by_rename),
    "rotate_folder": (
        old_folder,
        one_after_the_other(lambda: save_folder("step-2", sync=os.fsync), lambda: shutil.rmtree("step-1")),
    ),
    "latest": (old_latest, one_after_the_other(lambda: save("step-2.pt"), lambda: point_to("step-2.pt"))),
    "latest_fsync": (
        old_latest,
        one_after_the_other(lambda: save("step-2.pt", sync=os.fsync), lambda: point_to("step-2.pt"), sync_folder),
    ),
    "relink": (old_model, lambda: relinked("model.pt")),
    "append": (lambda: save("log"), appended),
    "safetensors": (lambda: safetensors("model.safetensors"), lambda: safetensors("model.safetensors")),
}

if __name__ == "__main__":
    os.chdir(OUT)
    make_old, make_new = WAYS[WAY]
    make_old()
    settle()
    make_new()

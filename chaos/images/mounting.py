"""Mounting image files on folders, and memory for them to lie in; only in a namespace of our own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.errors import HarnessError
from chaos.images.isolation import require_isolation
from chaos.images.kinds import ImageKind
from chaos.images.programs import run_program


def mount_image(kind: ImageKind, image: Path, folder: Path) -> None:
    """Mount an image file on an existing folder, which mends the file system by its journal, as after a start.

    `mount -o loop` gives the loop device the autoclear flag: it detaches when the mount is gone, whatever ends that.
    No other file system's names are written down (`-n`). Raises HarnessError where it cannot be mounted.
    """
    require_isolation()
    options = ("loop", "noatime", *kind.traits.copy_options, *kind.options)
    words = ("mount", "-n", "-t", str(kind.file_system), "-o", ",".join(options), str(image), str(folder))
    run_program(words, package="mount")


def mount_memory(folder: Path, size_bytes: int) -> None:
    """Mount a file system in memory on an existing folder; images in it are fast, and gone with the namespace."""
    require_isolation()
    options = f"size={size_bytes},mode=700"
    run_program(("mount", "-n", "-t", "tmpfs", "-o", options, "ninelives", str(folder)), package="mount")


def unmount(folder: Path) -> None:
    """Unmount a folder; HarnessError where a process still uses it."""
    require_isolation()
    run_program(("umount", "-n", str(folder)), package="mount")


@contextmanager
def mounted(kind: ImageKind, image: Path, folder: Path) -> Iterator[Path]:
    """Have an image mounted for a while; yields the folder."""
    mount_image(kind, image, folder)
    try:
        yield folder
    finally:
        unmount(folder)


def is_mounted(folder: Path) -> bool:
    """Tell whether something is mounted on a folder, for this process."""
    try:
        return os.path.ismount(folder)
    except OSError as error:
        raise HarnessError(f"{folder} cannot be looked at: {error.strerror}", hint="see `dmesg`") from error

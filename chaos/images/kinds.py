"""The file systems that images can have, with what each needs: its maker, its size, its way of losing power."""

from __future__ import annotations

import difflib
import re
from typing import Final

from chaos.errors import UsageError
from chaos.model import FileSystem, Record

_MEBIBYTE: Final = 1 << 20
_OPTION: Final = re.compile(r"[A-Za-z0-9_.-]+(=[A-Za-z0-9_.:-]+)?")
_EXAMPLE: Final = "write a file system's name, or one with mount options, such as ext4:noauto_da_alloc"


class Traits(Record, kw_only=True):
    """What is the same for all images of a file system.

    `least_bytes` is the size of the (sparse) image: for xfs the least that mkfs.xfs allows. `copy_options` let a copy
    be mounted while the original is. `has_shutdown`: it answers the shutdown ioctl. `package` is where Debian has
    `maker`.
    """

    maker: tuple[str, ...]
    package: str
    least_bytes: int
    copy_options: tuple[str, ...] = ()
    has_shutdown: bool = False


_TRAITS: Final = {
    # Blocks as on disks of real size: below 512 MB mkfs.ext4 makes them of 1 KB, and then pages are torn inside.
    FileSystem.EXT4: Traits(
        maker=("mkfs.ext4", "-q", "-F", "-b", "4096"),
        package="e2fsprogs",
        least_bytes=64 * _MEBIBYTE,
        has_shutdown=True,
    ),
    FileSystem.XFS: Traits(
        maker=("mkfs.xfs", "-q", "-f"),
        package="xfsprogs",
        least_bytes=300 * _MEBIBYTE,
        copy_options=("nouuid",),
        has_shutdown=True,
    ),
    # A copy beside its original needs Linux 6.7, which gives it an identity of its own while it is mounted.
    FileSystem.BTRFS: Traits(maker=("mkfs.btrfs", "-q", "-f"), package="btrfs-progs", least_bytes=128 * _MEBIBYTE),
}


class ImageKind(Record, kw_only=True):
    """A file system with the mount options (beside its defaults) that are to be tried."""

    file_system: FileSystem
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the text that `parse_kind` takes."""
        return f"{self.file_system}:{','.join(self.options)}" if self.options else str(self.file_system)

    @property
    def traits(self) -> Traits:
        """Return what all images of this file system share."""
        return _TRAITS[self.file_system]


DEFAULT_KINDS: Final = (
    ImageKind(file_system=FileSystem.EXT4),
    ImageKind(file_system=FileSystem.EXT4, options=("noauto_da_alloc",)),
    ImageKind(file_system=FileSystem.XFS),
    ImageKind(file_system=FileSystem.BTRFS),
)


def parse_kind(text: str) -> ImageKind:
    """Read `ext4`, or `ext4:noauto_da_alloc,commit=1`; UsageError where that is no kind of image.

    Whether the file system knows the options, its mount says.
    """
    name, colon, options = text.strip().partition(":")
    known = [str(file_system) for file_system in _TRAITS]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
        raise UsageError(f"no image can be made with the file system `{name}`", hint=hint)
    words = tuple(options.split(",")) if colon else ()
    for word in words:
        if not _OPTION.fullmatch(word):
            raise UsageError(f"`{word}` in `{text}` is no mount option", hint=_EXAMPLE)
    return ImageKind(file_system=FileSystem(name), options=words)

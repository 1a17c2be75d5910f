"""The power goes: what was not on the disk is never written any more.

Two ways. Where the file system answers the shutdown ioctl (ext4, xfs), that stops it at once, and what unmounting
leaves in the image is what a disk would hold. Everywhere, a copy of the image (`copying`) is what the disk held when it
was made, and the file system goes on. Neither knows of a disk that forgets what it has confirmed, or that has a cache
of its own and writes it in another order: what reached the loop device counts as held.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Final

from chaos.errors import HarnessError
from chaos.images.isolation import require_isolation
from chaos.images.kinds import ImageKind

# _IOR('X', 125, __u32), in linux/fs.h since 6.8; XFS_IOC_GOINGDOWN and EXT4_IOC_SHUTDOWN before. Without a flush of the
# log: a loss of power waits for nobody.
_FS_IOC_SHUTDOWN: Final = 0x8004587D
_NOLOGFLUSH: Final = 2


def shut_down(kind: ImageKind, folder: Path) -> None:
    """Stop the file system mounted on `folder`, at once; it can only be unmounted then, and its image looked at.

    Raises HarnessError where it has no such thing.
    """
    require_isolation()
    if not kind.traits.has_shutdown:
        raise HarnessError(f"{kind.file_system} cannot be shut down", hint="take a copy of the image")
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, _FS_IOC_SHUTDOWN, struct.pack("I", _NOLOGFLUSH))
    except OSError as error:
        hint = "take a copy of the image; the ioctl needs ext4 or xfs, and root"
        raise HarnessError(f"{folder} cannot be shut down: {error.strerror}", hint=hint) from error
    finally:
        os.close(fd)

"""A mount namespace of our own: what is mounted in it nobody else sees, and it is gone with its last process."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from pathlib import Path
from typing import Final

from chaos.errors import HarnessError

_CLONE_NEWNS: Final = 0x00020000
_MS_REC: Final = 0x4000
_MS_SLAVE: Final = 1 << 19
_AS_ROOT: Final = "run it as root (sudo); in a container, start that with --privileged"
_OURS: Final[set[str]] = set()


def isolate() -> None:
    """Move this process into a mount namespace of its own, once; its children are born into it.

    To be called by the main thread, before any other that touches mounts is started: threads move one by one. Mounts
    that others undo still go away here; ours are never seen there. Raises HarnessError where that is not allowed.
    """
    if is_isolated():
        return
    if threading.current_thread() is not threading.main_thread():
        raise HarnessError("only the main thread can move to a mount namespace", hint="this is a fault of ours")
    libc = ctypes.CDLL(None, use_errno=True)
    # A slave and not private: a disk that is unmounted outside is not kept busy by us.
    if libc.unshare(_CLONE_NEWNS) or libc.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None):
        number = ctypes.get_errno()
        hint = _AS_ROOT if number == errno.EPERM else "this kernel may lack mount namespaces"
        raise HarnessError(f"no mount namespace can be made: {os.strerror(number)}", hint=hint)
    _OURS.add(_namespace())


def is_isolated() -> bool:
    """Tell whether this process is in a namespace that `isolate` made."""
    return _namespace() in _OURS


def require_isolation() -> None:
    """Raise HarnessError where a mount would be seen by others, and outlive us."""
    if not is_isolated():
        raise HarnessError("nothing is mounted outside of a namespace of our own", hint="call `isolate` first")


def _namespace() -> str:
    """Return the identity of this thread's mount namespace."""
    return str(Path("/proc/thread-self/ns/mnt").readlink())

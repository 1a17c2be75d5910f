"""Which file a name means, and whether it lies in the output folder; what is written elsewhere is listed."""

# ruff: noqa: PTH108, PTH112, PTH114, PTH115, PTH118 - on the way of every held call, where a Path costs more than the work

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from chaos.intercept.spelling import spell

_OUTSIDE_LIMIT: Final = 200
_QUIET_OUTSIDE: Final = ("/dev/", "/proc/", "/sys/", "/memfd:")
_SHARED_MEMORY: Final = "/dev/shm/"  # noqa: S108 - where POSIX shared memory lives on Linux
_DELETED: Final = " (deleted)"


class Places:
    """The output folder, and all that is outside of it."""

    def __init__(self, out: Path, private: tuple[Path, ...]) -> None:
        """Take `out` as the folder; changes below `private` folders (ours) are not listed as outside."""
        self.outside_writes: dict[str, None] = {}
        self._shared_memory: set[str] = set()
        self._out = os.path.realpath(out)
        self._private = tuple(os.path.realpath(path) + "/" for path in private)

    def resolve(self, path: bytes, *, follows: bool) -> str:
        """Return the real path of a name that need not exist; its last part only where the call `follows` links."""
        text = os.fsdecode(path)
        folder, name = os.path.split(text.rstrip("/"))
        if follows or name in ("", ".", ".."):
            return without_deleted(os.path.realpath(text))
        return os.path.join(os.path.realpath(folder), name)

    def of_descriptor(self, fd: int) -> str:
        """Return the name of the file behind one of our descriptors; the last one it had where it has none any more."""
        return without_deleted(os.readlink(f"/proc/self/fd/{fd}"))

    def inside(self, name: str) -> str | None:
        """Return `name` relative to the output folder, None where it is outside of it."""
        if name == self._out:
            return "."
        return name[len(self._out) + 1 :] if name.startswith(self._out + "/") else None

    def list_outside(self, name: str) -> None:
        """Remember a path outside of the folder that the target writes to, within a limit."""
        is_quiet = not name or name.startswith((*_QUIET_OUTSIDE, *self._private)) or "__pycache__" in name
        if not is_quiet and len(self.outside_writes) < _OUTSIDE_LIMIT:
            self.outside_writes[spell(name)] = None

    def note_new(self, name: str) -> None:
        """Remember a shared memory object that the target is about to make; one that is there is not its own."""
        if name.startswith(_SHARED_MEMORY) and not os.path.lexists(name):
            self._shared_memory.add(name)

    def sweep_shared_memory(self) -> None:
        """Remove what the target, dead by now, has left in shared memory: nobody else would."""
        for name in self._shared_memory:
            if os.path.isdir(name) and not os.path.islink(name):
                shutil.rmtree(name, ignore_errors=True)
            with suppress(OSError):
                os.unlink(name)


def without_deleted(name: str) -> str:
    """Return what /proc says of a file without the remark that it has no name any more."""
    return name.removesuffix(_DELETED) if name.endswith(_DELETED) and not os.path.lexists(name) else name

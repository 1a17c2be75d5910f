"""The proof that nothing was written unseen: what the log says of each file against what the folder shows.

After every call that was carried out, the touched file's size and modification time are noted by device and inode, and
before one that brings files in from outside, theirs. At the end of a life every file in the folder must be as noted.
What is not (a mapping, a helper outside of the process tree, another container) is named. Two writes by an outsider
within one tick of the file system's clock that leave the size as it was would not be seen.
"""

# ruff: noqa: PTH112, PTH114, PTH116, PTH118 - this walks the whole folder, and bytes paths come in

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class _Seen(NamedTuple):
    """The last known size and modification time of a file; one of -1 is not compared."""

    size_bytes: int
    modified_ns: int


class Ledger:
    """The files of one folder as the log explains them."""

    def __init__(self, root: Path) -> None:
        """Take the folder as it is now as explained."""
        self._root = root
        self._seen: dict[tuple[int, int], _Seen] = {}
        self._mapped: set[tuple[int, int]] = set()
        for _, state in self._walk(root):
            self.note(state)

    def note(self, state: os.stat_result) -> None:
        """Remember a file as it is right after a call of ours on it."""
        self._seen[state.st_dev, state.st_ino] = _Seen(state.st_size, state.st_mtime_ns)

    def note_new(self, state: os.stat_result) -> None:
        """Remember a file that was made just now: what its number stood for before, a mapped file say, is no more."""
        self._mapped.discard((state.st_dev, state.st_ino))
        self.note(state)

    def note_path(self, path: bytes, *, is_new: bool) -> None:
        """Remember the file at `path`, if there is one; `is_new`: it was made just now."""
        try:
            state = os.stat(path, follow_symlinks=False)
            self.note_new(state) if is_new else self.note(state)
        except OSError:
            return

    def note_entering(self, path: bytes) -> None:
        """Remember what is about to come into the folder from outside, a folder with all below it, as it is now.

        To be called before the call: what is written from then on by somebody else is unseen. What was mapped stays so,
        and a file with another name, which may lie in the folder already, is only taken in where it is not known.
        """
        name = os.fsdecode(path)
        entering = [os.lstat(name)] if os.path.lexists(name) else []
        if os.path.isdir(name) and not os.path.islink(name):
            entering += [state for _, state in self._walk(name)]
        for state in entering:
            is_shared = stat.S_ISREG(state.st_mode) and state.st_nlink > 1
            if not is_shared or (state.st_dev, state.st_ino) not in self._seen:
                self.note(state)

    def loosen(self, state: os.stat_result) -> None:
        """Stop comparing the modification time of a file: the target may set it itself."""
        self._seen[state.st_dev, state.st_ino] = _Seen(state.st_size, -1)

    def loosen_path(self, path: bytes) -> None:
        """Stop comparing the modification time of the file at `path`, if there is one."""
        try:
            self.loosen(os.stat(path))
        except OSError:
            return

    def excuse(self, state: os.stat_result) -> None:
        """Compare nothing of a file until it is noted again: the end of a call on it will not be seen."""
        self._seen[state.st_dev, state.st_ino] = _Seen(-1, -1)

    def map(self, state: os.stat_result) -> None:
        """Remember that a file is mapped so that it can be written without any call."""
        self._mapped.add((state.st_dev, state.st_ino))

    def unexplained(self) -> tuple[str, ...]:
        """Return the files, relative to the folder, that the log does not explain."""
        return tuple(sorted(path for path, state in self._walk(self._root) if not self._is_explained(state)))

    def _is_explained(self, state: os.stat_result) -> bool:
        """Compare one file with what was noted; a socket, a FIFO or a device holds no bytes of the folder."""
        if stat.S_IFMT(state.st_mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            return True
        identity = (state.st_dev, state.st_ino)
        seen = self._seen.get(identity)
        if seen is None or identity in self._mapped:
            return False
        if not stat.S_ISREG(state.st_mode):
            return True
        return seen.size_bytes in (-1, state.st_size) and seen.modified_ns in (-1, state.st_mtime_ns)

    @staticmethod
    def _walk(root: Path | str) -> Iterator[tuple[str, os.stat_result]]:
        """Yield every entry below a folder with its state, not following links."""
        for folder, folders, files in os.walk(root):
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                try:
                    state = os.stat(path, follow_symlinks=False)
                except OSError:
                    continue
                yield os.path.relpath(path, root), state

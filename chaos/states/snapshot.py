"""Look at an output folder when nothing writes to it: each watched file is examined from outside."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import xxhash

from chaos.checkpoints.process import Examiner
from chaos.intercept.spelling import spell
from chaos.model import FileRole, FileState, Record
from chaos.roles import NamedFile

Classify = Callable[[str], NamedFile]


class Snapshot(Record, kw_only=True):
    """A crash state: the watched files by canonical name, the names of all others, and one digest over the former."""

    files: tuple[FileState, ...]
    other_files: tuple[str, ...]
    digest: str


class Photographer:
    """Takes snapshots of one output folder through an examiner in a process of its own."""

    def __init__(
        self,
        out: Path,
        examiner: Examiner,
        classify: Classify,
        *,
        verify: tuple[str, ...],
        deadline_s: float,
        varying_leaves: dict[str, tuple[str, ...]],
    ) -> None:
        """Photograph `out`; `classify` gives a relative path's key and role."""
        self._out = out
        self._examiner = examiner
        self._classify = classify
        self._verify = verify
        self._deadline_s = deadline_s
        self._varying_leaves = varying_leaves

    def take(self) -> Snapshot:
        """Return the state of the whole folder."""
        watched: list[FileState] = []
        others: list[str] = []
        for path, key, role in self._walk(self._out):
            if role is FileRole.OTHER:
                others.append(spell(path))
            else:
                watched.append(self._state(path, key, role))
        watched.sort(key=lambda state: (state.key, state.path))
        return Snapshot(files=tuple(watched), other_files=tuple(sorted(others)), digest=state_digest(watched))

    def checkpoints(self) -> tuple[FileState, ...]:
        """Return the checkpoints alone, as at an acknowledgement."""
        return tuple(
            self._state(path, key, role) for path, key, role in self._walk(self._out) if role is FileRole.CHECKPOINT
        )

    def _walk(self, folder: Path) -> Iterator[tuple[str, str, FileRole]]:
        """Yield relative path, key and role of every file; a watched folder counts as one thing."""
        for entry in _entries(folder):
            path = os.path.relpath(entry.path, self._out)
            key, role, _ = self._classify(spell(path))
            if role is FileRole.OTHER and entry.is_dir(follow_symlinks=False):
                yield from self._walk(Path(entry.path))
            else:
                yield path, key, role

    def _state(self, path: str, key: str, role: FileRole) -> FileState:
        """Examine one file or checkpoint folder."""
        full = self._out / path
        examination = self._examiner.examine(full, frozenset(self._varying_leaves.get(key, ())))
        is_whole, reason = examination.is_whole, examination.reason
        if self._verify and role is FileRole.CHECKPOINT:
            is_whole, reason = self._examiner.verify(self._verify, full, self._deadline_s)
        try:
            modified_ns = full.stat().st_mtime_ns
        except OSError:
            modified_ns = 0
        return FileState(
            path=spell(path),
            key=key,
            role=role,
            size_bytes=examination.size_bytes,
            is_whole=is_whole,
            reason=reason,
            format=examination.format,
            digest=examination.digest,
            modified_ns=modified_ns,
        )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, by name; nothing where the target removed or locked it."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def state_digest(files: list[FileState]) -> str:
    """Return the canonical digest of a crash state (hexadecimal, 128 bits).

    A damaged file under a name that varies from run to run counts by its name only: `torch.save` writes the file's own
    name into it.
    """
    digest = xxhash.xxh3_128()
    for state in sorted(files, key=lambda state: (state.key, state.digest)):
        is_comparable = state.is_whole or state.key == state.path
        digest.update(f"{state.key}\0{state.role}\0{state.digest if is_comparable else 'damaged'}\n".encode())
    return digest.hexdigest()

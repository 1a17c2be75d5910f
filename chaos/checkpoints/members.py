"""The members of a checkpoint: one for each file, or for a set of files that belong together."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from chaos.checkpoints.contents import Contents
from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.distributed import METADATA, SHARD_SUFFIX, read_distributed
from chaos.checkpoints.formats import Format, format_of, read_contents
from chaos.checkpoints.leaves import clean_name
from chaos.checkpoints.window import OpenFile, Window
from chaos.model import Record

MAX_FILES = 100_000


class Member(Record, kw_only=True):
    """A part of a checkpoint that is read on its own: its files, and what its leaves' names begin with."""

    prefix: str
    path: Path
    files: tuple[Path, ...]
    is_distributed: bool = False

    def leaf_name(self, name: str) -> str:
        """Return the full name of one of the member's leaves."""
        return f"{self.prefix}/{name}" if self.prefix else name


def require_content(window: Window) -> None:
    """Raise DamagedError for an empty file and for one of zeros only: no format looks like that."""
    if not window.size:
        raise DamagedError("it is empty")
    for piece in window.chunks():
        if piece.count(0) != len(piece):
            return
    raise DamagedError(f"all its {window.size} bytes are zero")


def open_member(member: Member, stack: ExitStack) -> Contents:
    """Return a member's contents, open until `stack` closes; raises DamagedError, UnjudgeableError, OSError."""
    if member.is_distributed:
        return read_distributed(member.files, stack)
    if not stat.S_ISREG(member.path.stat().st_mode):
        raise UnjudgeableError("it is neither a file nor a folder")
    window = stack.enter_context(OpenFile(member.path))
    require_content(window)
    return read_contents(window, format_of(window))


def members_of(path: Path) -> list[Member]:
    """Return the members of a file or a folder, sorted by name; raises OSError, UnjudgeableError beyond MAX_FILES."""
    if not path.is_dir():
        return [Member(prefix="", path=path, files=(path,))]
    members: list[Member] = []
    folders: dict[Path, list[Path]] = {}
    for file in _files_in(path):
        folders.setdefault(file.parent, []).append(file)
    for folder, files in sorted(folders.items()):
        members += _folder_members(path, folder, sorted(files))
    return sorted(members, key=lambda member: member.prefix)


def _folder_members(root: Path, folder: Path, files: list[Path]) -> Iterator[Member]:
    """Yield the members of one folder, subfolders not included."""
    shards = [file for file in files if file.name == METADATA or file.suffix == SHARD_SUFFIX]
    if shards:
        prefix = clean_name("" if folder == root else folder.relative_to(root).as_posix())
        yield Member(prefix=prefix, path=folder, files=tuple(shards), is_distributed=True)
    for file in files:
        if file not in shards:
            yield Member(prefix=clean_name(file.relative_to(root).as_posix()), path=file, files=(file,))


def _files_in(root: Path) -> list[Path]:
    """Return every file below `root`, links not followed; raises UnjudgeableError when there are too many."""
    found: list[Path] = []
    for folder, folders, names in os.walk(root, onerror=_raise):
        # A link to a folder is a file here: its target is its content, and there are no loops.
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        found.extend(Path(folder) / name for name in (*names, *links))
        if len(found) > MAX_FILES:
            raise UnjudgeableError(f"it has more than {MAX_FILES} files")
    return found


def _raise(error: OSError) -> None:
    """Raise: a folder that cannot be listed must not look empty."""
    raise error


def format_of_member(member: Member) -> Format:
    """Return the format of a single file, UNKNOWN where it cannot be read."""
    try:
        with OpenFile(member.path) as window:
            return format_of(window)
    except (OSError, DamagedError):
        return Format.UNKNOWN

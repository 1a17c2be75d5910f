"""Examines one checkpoint, a file or a folder: whether it is whole, its leaves, its digest."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from pathlib import Path

import msgspec
import xxhash
from msgspec.structs import replace

from chaos.checkpoints.contents import digested
from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.formats import Format, format_by_name
from chaos.checkpoints.leaves import Leaf, canonical_digest, clean_name, scalar_leaf
from chaos.checkpoints.members import Member, format_of_member, members_of, open_member, require_content
from chaos.checkpoints.window import OpenFile
from chaos.model import Record

NOTHING: frozenset[str] = frozenset()


class Examination(Record, kw_only=True):
    """What was found: `is_whole` is None where nobody here can tell; `reason` says why whenever it is not True.

    `digest` (hexadecimal, 128 bits) is over the sorted leaves of a whole checkpoint without those that were excluded,
    over the raw bytes of any other; empty when there is nothing to read. `leaves` are sorted by name, the excluded ones
    too; empty when not whole.
    """

    is_whole: bool | None
    reason: str = ""
    format: str = "unknown"
    digest: str = ""
    size_bytes: int = 0
    leaves: tuple[Leaf, ...] = ()


class MemberResult(Record, kw_only=True):
    """What was found of one member: like an examination, and with what it needs of other members."""

    member: Member
    is_whole: bool | None
    reason: str = ""
    format: str = "unknown"
    leaves: tuple[Leaf, ...] = ()
    needed: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def examine(path: Path, without: frozenset[str] = NOTHING) -> Examination:
    """Examine the file or folder at `path`, leaving the leaves named in `without` out of the digest; raises nothing."""
    try:
        found = _examine_folder(path, without) if path.is_dir() else _examine_file(path, without)
    except (FileNotFoundError, NotADirectoryError):
        return Examination(is_whole=False, reason="missing")
    except UnjudgeableError as error:
        found = Examination(is_whole=None, reason=str(error), size_bytes=size_of(path))
    except OSError as error:
        return Examination(is_whole=None, reason=f"it cannot be read: {error.strerror or error}")
    except MemoryError:
        return Examination(
            is_whole=None, reason="to read it takes more memory than the limit", size_bytes=size_of(path)
        )
    # Names of records and files are in the reason, and need not be valid Unicode.
    return replace(found, reason=clean_name(found.reason))


def size_of(path: Path) -> int:
    """Return the size of a file in bytes, of a folder's files together; 0 for what cannot be seen."""
    try:
        if not path.is_dir():
            return path.stat().st_size
        return sum(file.lstat().st_size for member in members_of(path) for file in member.files)
    except (OSError, UnjudgeableError):
        return 0


def find(member: Member) -> MemberResult:
    """Read and verify one member; raises OSError."""
    kind = "folder" if member.is_distributed else str(format_of_member(member))
    try:
        with ExitStack() as stack:
            contents = open_member(member, stack)
            leaves = (replace(leaf, name=member.leaf_name(leaf.name)) for leaf in digested(contents))
            found = tuple(sorted(leaves, key=lambda leaf: leaf.name))
            return MemberResult(
                member=member, is_whole=True, format=contents.format, leaves=found, needed=contents.needed
            )
    except DamagedError as error:
        return MemberResult(member=member, is_whole=False, reason=str(error), format=kind)
    except UnjudgeableError as error:
        return MemberResult(member=member, is_whole=None, reason=str(error), format=kind)
    except MemoryError:
        return MemberResult(
            member=member, is_whole=None, reason="to read it takes more memory than the limit", format=kind
        )
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - a file made to break the reader is a result, not a failure of ours
        return MemberResult(
            member=member, is_whole=None, reason=f"it cannot be understood ({type(error).__name__})", format=kind
        )


def _examine_file(path: Path, without: frozenset[str]) -> Examination:
    """Examine a single file; raises OSError."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return Examination(is_whole=None, reason="it is neither a file nor a folder")
    found = find(members_of(path)[0])
    return Examination(
        is_whole=found.is_whole,
        reason=found.reason,
        format=found.format,
        digest=canonical_digest(found.leaves, without) if found.is_whole else _raw_digest(path),
        size_bytes=status.st_size,
        leaves=found.leaves,
    )


def _examine_folder(path: Path, without: frozenset[str]) -> Examination:
    """Examine a folder by its members; raises OSError, UnjudgeableError."""
    members = members_of(path)
    findings = [_find_in_folder(member) for member in members]
    is_whole, reason = merged(findings)
    leaves = tuple(sorted((leaf for found in findings for leaf in found.leaves), key=lambda leaf: leaf.name))
    return Examination(
        is_whole=is_whole,
        reason=reason,
        format="folder",
        digest=canonical_digest(leaves, without) if is_whole else _raw_folder_digest(path, members),
        size_bytes=sum(file.lstat().st_size for member in members for file in member.files),
        leaves=leaves if is_whole else (),
    )


def _find_in_folder(member: Member) -> MemberResult:
    """Find one member of a folder, or what stands for it."""
    try:
        return stand_in(member) or find(member)
    except DamagedError as error:
        return MemberResult(member=member, is_whole=False, reason=str(error))


def stand_in(member: Member, *, follows_links: bool = False) -> MemberResult | None:
    """Return what stands for a member of a folder that is not read into leaves; None for one that is to be read.

    An unknown format counts by its raw bytes, a link by where it points to, or, with `follows_links`, as the file that
    is there. Raises DamagedError, OSError.
    """
    if member.path.is_symlink() and not (follows_links and member.path.is_file()):
        return _raw_finding(member, f"link to {member.path.readlink()}")
    if not member.is_distributed and not stat.S_ISREG(member.path.stat().st_mode):
        return _raw_finding(member, "neither a file nor a folder")
    # One whose name promises a format that it has not is no mere bystander: nobody can tell whether it is whole.
    kinds = {format_by_name(member.path), format_of_member(member)}
    if member.is_distributed or kinds != {Format.UNKNOWN}:
        return None
    with OpenFile(member.path) as window:
        # An empty file of an unknown kind may be a mark; zeros are always the trace of an accident.
        if window.size:
            require_content(window)
    return _raw_finding(member, "")


def _raw_finding(member: Member, stands_for: str) -> MemberResult:
    """Return a member that is one leaf: over its bytes, or over the words that stand for it."""
    leaf = scalar_leaf(member.prefix, stands_for, "raw")
    if not stands_for:
        size = member.path.stat().st_size
        leaf = replace(leaf, digest=_raw_digest(member.path), shown=f"{size} bytes")
    return MemberResult(member=member, is_whole=True, leaves=(leaf,))


def merged(findings: list[MemberResult]) -> tuple[bool | None, str]:
    """Return whether a folder is whole, and why not: damaged outweighs missing, missing outweighs not knowing."""
    if not findings:
        return False, "it is an empty folder"
    damaged = [_in_member(found) for found in findings if found.is_whole is False]
    lacking = _lacking(findings)
    unknown = [_in_member(found) for found in findings if found.is_whole is None]
    for is_whole, reasons in ((False, damaged), (False, lacking), (None, unknown)):
        if reasons:
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            return is_whole, reasons[0] + more
    if all(found.format == Format.UNKNOWN for found in findings):
        return None, "no file in it is of a format known here"
    return True, ""


def _in_member(found: MemberResult) -> str:
    """Return a member's reason with its name."""
    return f"{found.member.prefix}: {found.reason}" if found.member.prefix else found.reason


def _lacking(findings: list[MemberResult]) -> list[str]:
    """Return what indexes name and no member holds."""
    held = {found.member.prefix: {leaf.name for leaf in found.leaves} for found in findings}
    reasons = []
    for found in findings:
        folder = found.member.prefix.rpartition("/")[0]
        for file, names in found.needed.items():
            prefix = f"{folder}/{file}" if folder else file
            if prefix not in held:
                reasons.append(f"{found.member.prefix} names {file}, which is missing")
            else:
                absent = [name for name in names if f"{prefix}/{name}" not in held[prefix]]
                reasons += (f"{file} lacks {name}, which {found.member.prefix} names" for name in absent)
    return reasons


def _raw_digest(path: Path) -> str:
    """Return the digest over a file's bytes."""
    hasher = xxhash.xxh3_128()
    with OpenFile(path) as window:
        for piece in window.chunks():
            hasher.update(piece)
    return hasher.hexdigest()


def _raw_folder_digest(path: Path, members: list[Member]) -> str:
    """Return the digest over the names and bytes of all files in a folder."""
    hasher = xxhash.xxh3_128()
    for file in sorted(file for member in members for file in member.files):
        hasher.update(os.fsencode(file.relative_to(path)) + b"\0")
        is_plain = stat.S_ISREG(file.lstat().st_mode)
        target = os.fsencode(file.readlink()) if file.is_symlink() else b""
        hasher.update(_raw_digest(file).encode() if is_plain else target)
    return hasher.hexdigest()

"""Mutants: the model with one rule taken away, weakened or made too strong, and where that must show.

Here are those of the rules as data; beside this, those of names and of bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest

from chaos.model import FileSystem
from chaos.states.durability import history, rules
from chaos.states.durability.rules import NameOrder

EXT4, XFS, BTRFS, POSIX = FileSystem.EXT4, FileSystem.XFS, FileSystem.BTRFS, FileSystem.POSIX
Patch = pytest.MonkeyPatch
Apply = Callable[[Patch], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of the model, and the line of the table (pattern, way) or the small log by which it is caught."""

    name: str
    apply: Apply
    line: tuple[str, str] | str
    file_system: FileSystem

    def __str__(self) -> str:
        """Return what its test is called by."""
        return self.name


def _rules(file_system: FileSystem, **changes: Any) -> Apply:
    """Return what gives one file system other rules."""
    changed = {**rules.RULES, file_system: dataclasses.replace(rules.RULES[file_system], **changes)}
    return lambda patch: patch.setattr(history, "RULES", MappingProxyType(changed))


def _promise(call: str, **changes: bool) -> Apply:
    """Return what lets a call promise something else."""
    changed = {**rules.PROMISES, call: dataclasses.replace(rules.PROMISES[call], **changes)}
    return lambda patch: patch.setattr(history, "PROMISES", MappingProxyType(changed))


def replaced(owner: object, name: str, value: object) -> Apply:
    """Return what puts something else in the place of a part of the model."""
    return lambda patch: patch.setattr(owner, name, value)


def nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _mutants_of_rules() -> Iterator[Mutant]:
    """Yield a mutant for each field of each file system's rules, in each direction."""
    order_lines: dict[tuple[FileSystem, NameOrder], tuple[str, str]] = {
        (FileSystem.POSIX, NameOrder.PREFIX): ("marker", "nothing"),
        (FileSystem.POSIX, NameOrder.LOGGED): ("rotation by unlink", "file"),
        (FileSystem.BTRFS, NameOrder.PREFIX): ("unrelated", "file"),
        (FileSystem.BTRFS, NameOrder.FREE): ("marker", "nothing"),
        **{(fs, NameOrder.LOGGED): ("unrelated", "file") for fs in (FileSystem.EXT4, FileSystem.XFS)},
        **{(fs, NameOrder.FREE): ("rotation by unlink", "file") for fs in (FileSystem.EXT4, FileSystem.XFS)},
    }
    for (fs, order), line in order_lines.items():
        yield Mutant(f"names of {fs} {order}", _rules(fs, name_order=order), line, fs)
    for fs, rule in rules.RULES.items():
        keeps, waits = not rule.fsync_keeps_names, not rule.sync_waits
        yield Mutant(f"{fs}: fsync keeps names {keeps}", _rules(fs, fsync_keeps_names=keeps), ("direct", "file"), fs)
        yield Mutant(f"{fs}: sync waits {waits}", _rules(fs, sync_waits=waits), ("replace", "sync"), fs)


OF_RULES = (
    *_mutants_of_rules(),
    Mutant("fsync: no data", _promise("fsync", data=False), ("replace", "file"), EXT4),
    Mutant("fsync: no entries", _promise("fsync", entries=False), ("replace", "folder"), POSIX),
    Mutant("fsync: no entries, in order", _promise("fsync", entries=False), ("replace", "folder"), EXT4),
    Mutant("fsync: no entries, in a log", _promise("fsync", entries=False), ("replace", "folder"), BTRFS),
    Mutant("fsync: no names but the first", _promise("fsync", names=False), ("late", "file"), EXT4),
    Mutant("fsync: no names", _promise("fsync", names=False, creation=False), ("direct", "file"), EXT4),
    Mutant("fdatasync: no data", _promise("fdatasync", data=False), ("replace", "fdatasync"), EXT4),
    Mutant("fdatasync: entries", _promise("fdatasync", entries=True), "fdatasync of a folder", EXT4),
    Mutant("fdatasync: names", _promise("fdatasync", names=True), ("late", "fdatasync"), EXT4),
    Mutant("fdatasync: no creation", _promise("fdatasync", creation=False), ("direct", "fdatasync"), EXT4),
    Mutant("msync: no data", _promise("msync", data=False), ("overwrite", "msync"), EXT4),
    Mutant("msync: entries", _promise("msync", entries=True), "msync of a folder", EXT4),
    Mutant("msync: names", _promise("msync", names=True), ("late", "msync"), EXT4),
    Mutant("msync: no creation", _promise("msync", creation=False), ("direct", "msync"), EXT4),
    Mutant("sync_file_range: data", _promise("sync_file_range", data=True), ("overwrite", "sync_file_range"), EXT4),
    Mutant("sync_file_range: entries", _promise("sync_file_range", entries=True), "sync_file_range of a folder", EXT4),
    Mutant("sync_file_range: names", _promise("sync_file_range", names=True), ("late", "sync_file_range"), EXT4),
    Mutant(
        "sync_file_range: creation", _promise("sync_file_range", creation=True), ("direct", "sync_file_range"), EXT4
    ),
    Mutant("no sync", replaced(history, "EVERYTHING", frozenset({"syncfs"})), ("replace", "sync"), EXT4),
    Mutant("no syncfs", replaced(history, "EVERYTHING", frozenset({"sync"})), ("replace", "syncfs"), EXT4),
)

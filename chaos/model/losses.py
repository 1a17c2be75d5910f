"""What a loss of power left of the output folder: which names, which bytes, and by whose rules that can be."""

from __future__ import annotations

from enum import StrEnum

from chaos.model.record import Record


class FileSystem(StrEnum):
    """Whose rules of durability hold; `posix` are those of any file system that keeps no more than POSIX promises."""

    POSIX = "posix"
    EXT4 = "ext4"
    XFS = "xfs"
    BTRFS = "btrfs"


class SurvivingBytes(Record, kw_only=True, array_like=True):
    """The bytes from file offset `start` to `end` are those that the file had after change `position` of the log.

    `position` -1: those that it had when the log began.
    """

    start: int
    end: int
    position: int


class SurvivingFile(Record, kw_only=True, array_like=True):
    """What is left of one file: its length, and where its bytes are from; what no range covers is zeros."""

    node: int
    size_bytes: int
    ranges: tuple[SurvivingBytes, ...]


class SurvivingName(Record, kw_only=True, array_like=True):
    """A name in the folder `parent` leads to `node`, or to nothing (None)."""

    parent: int
    name: str
    node: int | None


class NotDurable(Record, kw_only=True):
    """One thing that an acknowledged checkpoint needs, and that nothing had made durable.

    `path` is the checkpoint's name; `missing` says what was not called, such as `fsync of resume.pt.tmp`;
    `published_by` is the operation that put the name in place.
    """

    path: str
    missing: str
    published_by: str


class Loss(Record, kw_only=True):
    """One state that a loss of power may leave; all names and files that could have come out otherwise are told.

    `profiles` are the file systems by whose rules it can be. `not_durable` is what the last acknowledged save lacks.
    """

    profiles: tuple[FileSystem, ...]
    names: tuple[SurvivingName, ...] = ()
    files: tuple[SurvivingFile, ...] = ()
    not_durable: tuple[NotDurable, ...] = ()


class Cut(Record, kw_only=True):
    """What a power cut on a real file system showed, held against the durability model.

    `is_all_there`: nothing was lost. `digest` is over all names and bytes that were left, hexadecimal. `set_log10` is
    the decimal logarithm of the number of states that the model allows there (None: too many to be counted). `lacking`
    says why the model lacks the state that was seen (empty: it has it), `undecided` why that could not be told.
    """

    is_all_there: bool
    digest: str
    set_log10: float | None = None
    lacking: str = ""
    undecided: str = ""

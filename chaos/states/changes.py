r"""What operations changed in the output folder, as records: enough to build any state of the folder again.

Each change has the index of its operation in the life's log; what was there before the life, or came to pass before its
first operation, has -1. An operation may be told by several changes. Nodes are numbers of our own, one for each inode's
life (the kernel gives a removed file's number to the next one). A name is text in which a backslash is doubled and a
byte that is no UTF-8 is `\udcff`, so that it can be turned back. Owners are not kept.
"""

from __future__ import annotations

import re
from enum import StrEnum

from chaos.model import Record
from chaos.states.content import Piece

ROOT = 0
BEFORE_ALL = -1
SYNCED_ELSEWHERE = "fsync elsewhere"  # of a file that was moved in later, whose bytes were durable before


class NodeKind(StrEnum):
    """What a node is."""

    FILE = "file"
    FOLDER = "folder"
    SYMLINK = "symlink"
    FIFO = "fifo"


class Durability(StrEnum):
    """What of a write is on the disk when it returns: nothing, its data (O_DSYNC), all of it (O_SYNC)."""

    NONE = "none"
    DATA = "data"
    ALL = "all"


class Stamp(Record, kw_only=True, array_like=True):
    """The permissions (12 bits) and the modification time that a node had after a change."""

    node: int
    mode: int
    modified_ns: int


class Changed(Record, kw_only=True, omit_defaults=True):
    """What all changes tell: the index of their operation, its call, and how nodes were stamped after it."""

    index: int = BEFORE_ALL
    call: str = ""
    stamps: tuple[Stamp, ...] = ()


class Made(Changed, kw_only=True, tag="made", omit_defaults=True):
    """A node came to be: under a name in the folder `parent`, or without any (None); `text` is a symlink's."""

    node: int
    kind: NodeKind
    parent: int | None = None
    name: str = ""
    text: str = ""


class Wrote(Changed, kw_only=True, tag="wrote", omit_defaults=True):
    """Bytes were put into a file at `offset`, those of `pieces` one after another.

    `can_tear`: SIGKILL could have left the first pages of it alone. It cannot where the bytes were read back from the
    file afterwards: then this may be more than was written.
    """

    node: int
    offset: int
    pieces: tuple[Piece, ...]
    can_tear: bool = False
    durability: Durability = Durability.NONE

    @property
    def end(self) -> int:
        """Return the file offset after the last byte."""
        return self.offset + sum(piece.size_bytes for piece in self.pieces)


class Resized(Changed, kw_only=True, tag="resized", omit_defaults=True):
    """A file was cut, or grew by a hole, to `size_bytes`."""

    node: int
    size_bytes: int


class Allocated(Changed, kw_only=True, tag="allocated", omit_defaults=True):
    """Room was set aside for `length_bytes` at `offset`; the file then had `size_bytes`."""

    node: int
    offset: int
    length_bytes: int
    size_bytes: int


class Zeroed(Changed, kw_only=True, tag="zeroed", omit_defaults=True):
    """A range became zeros (a hole punched, or zeros set); the file then had `size_bytes`."""

    node: int
    offset: int
    length_bytes: int
    size_bytes: int


class Linked(Changed, kw_only=True, tag="linked", omit_defaults=True):
    """A node got a further name, or its first one."""

    node: int
    parent: int
    name: str


class Unlinked(Changed, kw_only=True, tag="unlinked", omit_defaults=True):
    """A name went away: removed, or moved out of the output folder with all that is below it."""

    parent: int
    name: str


class Renamed(Changed, kw_only=True, tag="renamed", omit_defaults=True):
    """A name moved, over another where there was one, or two names changed places."""

    parent: int
    name: str
    new_parent: int
    new_name: str
    is_exchange: bool = False


class Stamped(Changed, kw_only=True, tag="stamped", omit_defaults=True):
    """Permissions or times changed, and nothing else."""


class Attributed(Changed, kw_only=True, tag="attributed", omit_defaults=True):
    """A node's extended attributes, all of them: names (as `to_text` writes them) and values, hexadecimal."""

    node: int
    attributes: dict[str, str]


class Synced(Changed, kw_only=True, tag="synced", omit_defaults=True):
    """A node, or everything (None), was made durable, as far as `call` does that; a kill does not ask for it.

    `has_failed`: the call ended with an error, after which the kernel takes what it could not write for clean.
    """

    node: int | None = None
    has_failed: bool = False


Change = Made | Wrote | Resized | Allocated | Zeroed | Linked | Unlinked | Renamed | Stamped | Attributed | Synced

_ESCAPED = re.compile(r"\\(?:\\|udc([0-9a-f]{2}))")


def to_text(name: bytes) -> str:
    """Return a name, a path or a symlink's text as it is written in changes."""
    text = name.decode("utf-8", "surrogateescape").replace("\\", "\\\\")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def to_bytes(text: str) -> bytes:
    """Return the bytes of what `to_text` wrote."""
    plain = _ESCAPED.sub(lambda match: chr(0xDC00 + int(match[1], 16)) if match[1] else "\\", text)
    return plain.encode("utf-8", "surrogateescape")

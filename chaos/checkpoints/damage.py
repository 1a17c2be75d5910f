"""What a reader raises to say that a file is not whole, or that nobody here can tell: both are results."""

from __future__ import annotations


class DamagedError(Exception):
    """The file is in a known format and not whole; the message is the reason, one clause."""


class UnreadablePickleError(DamagedError):
    """A pickle cannot be read: damaged, unless a checksum says that its bytes are what was written."""


class UnjudgeableError(Exception):
    """Whether the file is whole cannot be told here; the message is the reason, one clause."""

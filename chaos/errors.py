"""Every exception of the harness; each tells the user what to do next.

A target that crashes is a result, not an exception: these classes are for our own failures
and for what the user asked wrongly.
"""

from __future__ import annotations

from typing import ClassVar


class ChaosError(Exception):
    """Root of all errors that `chaos` raises on purpose; `exit_status` is what the command returns."""

    exit_status: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        """Keep `message` (one sentence) and `hint` (what to type or change next, may be empty)."""
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def sentences(self) -> str:
        """Return message and hint in one line, for a list of reasons."""
        if not self.hint:
            return self.message
        stop = "" if self.message[-1:] in (".", "!", "?") else "."
        return f"{self.message}{stop} {self.hint[:1].upper()}{self.hint[1:]}"

    def __str__(self) -> str:
        """Return the message, followed by the hint on a line of its own."""
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(ChaosError):
    """The command line, a scenario or the target's description is wrong; the user mends it and tries again."""

    exit_status = 2


class HarnessError(ChaosError):
    """The harness itself failed; the hint says what to install, allow or report."""

    exit_status = 3


class InconclusiveError(ChaosError):
    """Nothing can be concluded, such as a target whose reference never saved; never a pass."""

    exit_status = 4

"""The operation log of one life, and where in it a fault strikes."""

from __future__ import annotations

from enum import StrEnum

from chaos.model.record import Record


class Phase(StrEnum):
    """The part of a lineage in which a fault strikes."""

    STARTUP = "startup"
    STEP = "step"
    SAVE = "save"
    RECOVERY = "recovery"
    FINISH = "finish"


class FaultKind(StrEnum):
    """What happens at a crash point; each kind is judged by itself, and has its model in `chaos.faults`."""

    KILL = "kill"
    TORN_WRITE = "torn_write"
    POWER_LOSS = "power_loss"
    DISK_FULL = "disk_full"
    IO_ERROR = "io_error"
    SHORT_WRITE = "short_write"
    BIT_FLIP = "bit_flip"

    @property
    def is_error(self) -> bool:
        """Tell whether a life that meets the fault is not killed, but gets an answer that it has to deal with."""
        return self in {FaultKind.DISK_FULL, FaultKind.IO_ERROR, FaultKind.SHORT_WRITE}


class OperationKind(StrEnum):
    """Which of the four kinds of event on the one clock an operation is."""

    FILE = "file"
    OUTPUT = "output"
    TICK = "tick"
    MARK = "mark"


class Operation(Record, kw_only=True):
    """One notified event of a life, in the order of the one clock.

    `path` and `new_path` are relative to the output folder (no leading slash) or absolute outside it. `call` is the
    system call's name without width suffixes (`openat`, `write`, `writev`, `rename`, …), `write` for output, `tick` for
    an optimizer step, and the mark's name (`interpreter`, `torch`, `exit`) for a mark. `creates` says that the call
    makes or empties `path` (open with O_CREAT of a missing file, or with O_TRUNC) or, for rename and link, `new_path`.
    `offset` and `size_bytes` are those of a data write. `thread` is the ordinal of the thread in order of first
    appearance in this life. `text` is the output written, cut at `TEXT_LIMIT_CHARACTERS`; `stream` is `stdout` or
    `stderr`. `error` is the errno that was answered in place of carrying the call out (0: it was carried out).
    """

    index: int
    kind: OperationKind
    call: str
    thread: int = 0
    path: str = ""
    new_path: str = ""
    creates: bool = False
    offset: int = 0
    size_bytes: int = 0
    stream: str = ""
    text: str = ""
    error: int = 0


class Address(Record, kw_only=True):
    """A crash point's place, the same in every run: never a time, never a global ordinal.

    Inside a save, `save` is the ordinal of that save *within the life*, from 1, and `tick` is 0. Outside of saves
    `save` is 0 and `tick` is the number of steps that this life had completed. `file` is the file key (placeholders for
    tokens that vary), or `stdout`, `stderr`, or empty for ticks and marks. `incarnation` counts how often that file was
    created anew in this context (0: not created here), `occurrence` counts this call on this incarnation in this
    context, from 1.
    """

    save: int = 0
    tick: int = 0
    file: str = ""
    incarnation: int = 0
    call: str
    occurrence: int = 1

    def __str__(self) -> str:
        """Return the address in words, such as `save 3: writev #7 of resume.pt.tmp`."""
        context = f"save {self.save}" if self.save else f"after {self.tick} steps"
        return f"{context}: {self.operation}"

    @property
    def operation(self) -> str:
        """Return in words which operation it is within its context."""
        again = f" (incarnation {self.incarnation})" if self.incarnation > 1 else ""
        what = f" of {self.file}{again}" if self.file else ""
        return f"{self.call} #{self.occurrence}{what}"


class CrashPoint(Record, kw_only=True):
    """Where one fault of a trial strikes: before the operation at `address`, or inside it.

    With `tear_offset` (a file offset; a multiple of 4096 but for `torn_write` and `short_write`) the write at `address`
    is carried out up to that offset and no further. `is_sticky`: an error is answered from there on until the life
    ends, not once. `profile` is the file system whose rules of durability hold when the power goes, `variant` which of
    the states (or which place of a flipped bit) it is. `expected_phase` is the phase that the planner drew it for. In
    polled lives, `address` is only approximate. `is_real`: the power is really cut, on an image of the kind `profile`
    (as `chaos.images` writes it); `variant` 1 is then that the file system's journal is committed first.
    """

    address: Address
    expected_phase: Phase
    fault: FaultKind = FaultKind.KILL
    tear_offset: int | None = None
    is_sticky: bool = False
    profile: str = ""
    variant: int = 0
    is_real: bool = False

    def __str__(self) -> str:
        """Return the crash point in words."""
        save, tick = self.address.save, self.address.tick
        context = f"in save {save}" if save else f"after {tick} {'step' if tick == 1 else 'steps'}"
        if self.tear_offset is None:
            place = f"{context}, {'at' if self.fault.is_error else 'before'} {self.address.operation}"
        else:
            place = f"{context}, inside {self.address.operation}, torn at byte {self.tear_offset:,}"
        lasting = " and from there on" if self.is_sticky else ""
        return f"{place}{lasting}" if self.fault is FaultKind.KILL else f"{self.fault} {place}{lasting}{self._choice()}"

    def _choice(self) -> str:
        """Return which of several outcomes it is, in words."""
        if self.is_real:
            return f", on a real {self.profile}" + (", right after a commit of its journal" if self.variant else "")
        if self.fault is FaultKind.POWER_LOSS:
            return f", state {self.variant}" + (f" of {self.profile}" if self.profile else "")
        return f", damage {self.variant}" if self.fault is FaultKind.BIT_FLIP else ""

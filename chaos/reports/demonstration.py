"""What the demonstration showed, and how `chaos demo` tells it in plain words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from chaos.model import SCHEMA, FileState, Record

_SHOWN = 100


class Side(Record, kw_only=True):
    """One half of the demonstration: what was there before the kill, what after it, what the next start made of it.

    `before` and `after` are the checkpoints at the last acknowledged save and after the kill. `torch_says` is the
    complaint of `torch.load` about the newest checkpoint's file (empty: it loads). `is_same_bits` tells whether the
    final files are the uninterrupted run's.
    """

    scenario: str
    crash_point: str
    written_bytes: int
    acknowledged_step: int | None
    before: tuple[FileState, ...]
    after: tuple[FileState, ...]
    torch_says: str
    restart_status: int | None
    restart_first_step: int | None
    restart_said: str
    is_same_bits: bool


class Demonstration(Record, kw_only=True):
    """Both halves; `came_out_as_told` is true when the first lost everything and the second nothing."""

    schema: int = SCHEMA
    in_place: Side
    durable: Side
    came_out_as_told: bool
    run_dir: str


def demonstration_in_words(demonstration: Demonstration) -> str:
    """Return the whole story."""
    return "\n".join(
        [
            "",
            "1. A save that overwrites its only checkpoint (torch.save straight onto resume.pt)",
            "",
            *_story(demonstration.in_place),
            "",
            "2. The same kill, when the save writes to a temporary name, syncs it, and then renames it",
            "",
            *_story(demonstration.durable),
            "",
            _moral(demonstration),
        ]
    )


def _story(side: Side) -> Iterator[str]:
    """Yield the lines of one half."""
    yield f"   The trainer had said: saved step {side.acknowledged_step}. On the disk then:"
    yield from files_in_words(side.before)
    yield f"   SIGKILL, sent from outside: {side.crash_point}"
    yield f"   ({side.written_bytes:,} bytes of that write were carried out). On the disk now:"
    yield from files_in_words(side.after)
    if side.torch_says:
        yield f"   torch.load(resume.pt) says: {textwrap.shorten(side.torch_says, _SHOWN, placeholder=' …')}"
    whole = [state.path for state in side.after if state.is_whole]
    yield f"   Whole checkpoints left: {', '.join(whole) if whole else 'none'}."
    if side.restart_status == 0:
        yield f"   The trainer is started again. It resumes by itself at step {side.restart_first_step}, and ends well."
        bits = "the same bits as" if side.is_same_bits else "OTHER bits than"
        yield f"   Its final weights have {bits} those of the run that was never interrupted."
    else:
        yield f"   The trainer is started again, and ends with status {side.restart_status}:"
        yield f"     {side.restart_said}"


def files_in_words(files: Iterable[FileState]) -> Iterator[str]:
    """Yield one line for each checkpoint."""
    for state in files:
        how = "whole" if state.is_whole else f"BROKEN: {state.reason}"
        yield f"     {state.path:<16} {state.size_bytes:>12,} bytes   {how}"


def _moral(demonstration: Demonstration) -> str:
    """Say what follows."""
    if demonstration.came_out_as_told:
        return (
            "So: the first way loses the run to one kill at the wrong moment, the second loses nothing.\n"
            "(Against the loss of power the sync before the rename matters too; against a kill the rename is enough.)\n"
            "Next: chaos run --kills 20"
        )
    return f"This did NOT come out as told. Look at {demonstration.run_dir}, and please report it."

"""How the checks speak of a fault, and of what a loss of power took away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from chaos.model import CrashPoint, Evidence, FaultKind, NotDurable

_FAULTS: Final[Mapping[FaultKind, str]] = MappingProxyType(
    {
        FaultKind.KILL: "the kill",
        FaultKind.TORN_WRITE: "the kill inside a write",
        FaultKind.POWER_LOSS: "the loss of power",
        FaultKind.DISK_FULL: "the full disk",
        FaultKind.IO_ERROR: "the I/O error",
        FaultKind.SHORT_WRITE: "the short write",
        FaultKind.BIT_FLIP: "the damage",
    }
)


def the(fault: FaultKind) -> str:
    """Return what a fault of this kind is called, such as `the full disk`."""
    return _FAULTS[fault]


def counted(number: int, fault: FaultKind, *, among: bool = False) -> str:
    """Say how many faults of a kind there are, such as `2 kills` or `1 fault (disk_full)`.

    With `among` it goes behind "so many of the": then it is a plural even of one.
    """
    plural = "" if number == 1 and not among else "s"
    return f"{number} kill{plural}" if fault is FaultKind.KILL else f"{number} fault{plural} ({fault})"


def struck(point: CrashPoint) -> str:
    """Return a crash point in words, with its kind of fault."""
    return f"kill {point}" if point.fault is FaultKind.KILL else str(point)


def why_lost(evidence: Evidence | None) -> str:
    """Say what a loss of power took away for want of which call; empty where nothing is known to be missing.

    It begins with a blank, to go behind another sentence.
    """
    if evidence is None or evidence.loss is None:
        return ""
    profiles = ", ".join(evidence.loss.profiles)
    return "".join(f" {_not_durable(item, profiles)}" for item in _distinct(evidence.loss.not_durable))


def _distinct(items: Sequence[NotDurable]) -> tuple[NotDurable, ...]:
    """Return each item once, in order."""
    return tuple({(item.path, item.missing): item for item in items}.values())


def _not_durable(item: NotDurable, profiles: str) -> str:
    """Say what one file lacks."""
    placed = f"was put in place by `{item.published_by}`" if item.published_by else "was there"
    return f"{item.path} {placed}, but {item.missing} is missing: it can be so on {profiles}."

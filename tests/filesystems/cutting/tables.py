"""Prints what came of every pattern on every kind of image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cutting.examining import Examined

_HEADS: Final = ("pattern", "file system", "cuts", "images", "states", "model's set", "built", "unsafe seen", "")
_LINE: Final = "{:<22} {:<22} {:>6} {:>7} {:>7} {:>13} {:>8} {:>12}  {}"


def head() -> str:
    """Return the line above all others."""
    return _LINE.format(*_HEADS)


def line(examined: Examined) -> str:
    """Return one line."""
    size = examined.set_size
    return _LINE.format(
        examined.pattern,
        examined.kind,
        examined.cuts,
        examined.images,
        examined.states,
        f"{size:,}" if size < 10**9 else f"{float(size):.1e}",
        examined.states_modelled,
        f"{examined.corners_seen} of {examined.corners}",
        "pass" if examined.is_right else "FAIL",
    )


def complaints(examined: Examined, most: int) -> Iterable[str]:
    """Yield what is wrong, up to a number of lines."""
    yield from (f"    {complaint}" for complaint in examined.complaints[:most])
    if len(examined.complaints) > most:
        yield f"    and {len(examined.complaints) - most} more"

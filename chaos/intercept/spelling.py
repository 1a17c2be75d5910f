"""Names as text: a file name is bytes, and a record must be text that can be stored as UTF-8."""

from __future__ import annotations


def spell(name: str) -> str:
    r"""Return a file name with bytes that are no UTF-8 written as `\udcff`; all other names stay as they are."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")

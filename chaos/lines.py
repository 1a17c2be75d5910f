"""Step lines and acknowledgements in what a target writes, however its lines are cut into writes.

`print` of an unbuffered Python writes the text and the newline apart, a progress bar ends its lines with a carriage
return, and a buffered script writes many lines at once: so lines are put together here, per stream.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaos.model import TEXT_LIMIT_CHARACTERS, Record, Target

LINE_LIMIT_CHARACTERS = 4096
LARGEST_NUMBER = 2**53  # a larger "step" is no step, and JSON readers would round it


class Reading(Record, kw_only=True):
    """What one write brought: how many step lines, and the numbers of its acknowledgements (None: without a number)."""

    steps: int = 0
    acknowledged: tuple[int | None, ...] = ()


@dataclass(slots=True)
class _Line:
    """A line that has not ended yet, and what it has been counted as."""

    text: str = ""
    is_step: bool = False
    is_acknowledgement: bool = False
    has_first_step: bool = False


class LineReader:
    """Reads a life's output write by write; a pattern counts once a line, at the write that completes its first match.

    A line that is an acknowledgement is no step line, though `saved step 30` may match both patterns. A number
    that goes on in the next write (`step 3`, then `0`) is corrected there.
    """

    def __init__(self, target: Target) -> None:
        """Compile the patterns of `target`; an empty pattern matches nothing."""
        self._step = re.compile(target.step or r"(?!)")
        self._saved = re.compile(target.saved or r"(?!)")
        self._lines: dict[str, _Line] = {}
        self.first_step: int | None = None
        self.last_step: int | None = None

    def read(self, stream: str, text: str) -> Reading:
        """Take in one write of `text` to `stream` and return what it brought."""
        steps = 0
        acknowledged: list[int | None] = []
        *ended, last = re.split(r"[\r\n]", text)
        for fragment in ended:
            steps += self._extend(stream, fragment, acknowledged)
            self._lines.pop(stream, None)
        if last:
            steps += self._extend(stream, last, acknowledged)
        if len(text) >= TEXT_LIMIT_CHARACTERS:  # cut there, so how its last line went on is unknown
            self._lines.pop(stream, None)
        return Reading(steps=steps, acknowledged=tuple(acknowledged))

    def _extend(self, stream: str, fragment: str, acknowledged: list[int | None]) -> bool:
        """Lengthen the stream's line, note an acknowledgement, and tell whether it has just become a step line."""
        line = self._lines.setdefault(stream, _Line())
        if len(line.text) + len(fragment) > LINE_LIMIT_CHARACTERS:
            return False
        line.text += fragment
        if line.is_acknowledgement:
            return False
        match = self._saved.search(line.text)
        if match:
            line.is_acknowledgement = True
            acknowledged.append(_number(match))
            return False
        match = self._step.search(line.text)
        if not match:
            return False
        self._note_step(line, _number(match))
        is_new, line.is_step = not line.is_step, True
        return is_new

    def _note_step(self, line: _Line, number: int | None) -> None:
        """Keep the first and the largest step number."""
        if number is None:
            return
        if self.first_step is None or line.has_first_step:
            self.first_step, line.has_first_step = number, True
        self.last_step = number if self.last_step is None else max(self.last_step, number)


def _number(match: re.Match[str]) -> int | None:
    """Return the number in the first group that took part in the match, or None where there is none."""
    digits = next((group for group in match.groups() if group is not None), "")
    try:
        number = int(digits)
    except ValueError:
        return None
    return number if number <= LARGEST_NUMBER else None

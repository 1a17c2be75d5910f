"""Step lines and acknowledgements in what a target writes, however its lines are cut into writes.

`print` of an unbuffered Python writes the text and the newline apart, a progress bar ends its lines with a carriage
return, and a buffered script writes many lines at once: so lines are put together here, per stream and thread, since
the pieces of two threads' lines come in any order. Colours and other terminal sequences are no part of a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaos.model import TEXT_LIMIT_CHARACTERS, Record, Target

LINE_LIMIT_CHARACTERS = 4096
MAX_OPEN_LINES = 64  # threads that ended within a line never end it
LARGEST_NUMBER = 2**53  # a larger "step" is no step, and JSON readers would round it
# ECMA-48 control sequences, a last one perhaps not complete yet.
_CONTROL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|$)")


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
        self._lines: dict[tuple[str, int], _Line] = {}
        self.first_step: int | None = None
        self.last_step: int | None = None

    def read(self, stream: str, text: str, *, thread: int = 0) -> Reading:
        """Take in one write of `text` to `stream` by `thread` (its ordinal) and return what it brought."""
        writer = (stream, thread)
        steps = 0
        acknowledged: list[int | None] = []
        *ended, last = re.split(r"[\r\n]", text)
        for fragment in ended:
            steps += self._extend(writer, fragment, acknowledged)
            self._lines.pop(writer, None)
        if last:
            steps += self._extend(writer, last, acknowledged)
        if len(text) >= TEXT_LIMIT_CHARACTERS:  # cut there, so how its last line went on is unknown
            self._lines.pop(writer, None)
        return Reading(steps=steps, acknowledged=tuple(acknowledged))

    def _extend(self, writer: tuple[str, int], fragment: str, acknowledged: list[int | None]) -> bool:
        """Lengthen the writer's line, note an acknowledgement, and tell whether it has just become a step line."""
        line = self._line_of(writer)
        if len(line.text) + len(fragment) > LINE_LIMIT_CHARACTERS:
            return False
        line.text += fragment
        if line.is_acknowledgement:
            return False
        text = _CONTROL_SEQUENCE.sub("", line.text)
        match = self._saved.search(text)
        if match:
            line.is_acknowledgement = True
            acknowledged.append(_number(match))
            return False
        match = self._step.search(text)
        if not match:
            return False
        self._note_step(line, _number(match))
        is_new, line.is_step = not line.is_step, True
        return is_new

    def _line_of(self, writer: tuple[str, int]) -> _Line:
        """Return the line that a writer has not ended yet; the oldest one is given up where there are too many."""
        line = self._lines.get(writer)
        if line is None:
            if len(self._lines) >= MAX_OPEN_LINES:
                del self._lines[next(iter(self._lines))]
            line = self._lines[writer] = _Line()
        return line

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

"""Finds, in JSON and in pickles, a number to change so that the file still loads: what rot does where no tensor is."""

from __future__ import annotations

import io
import pickletools
import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.pickles import load_next

# Odd numbers: by their multiples, any count of places is gone through in an order that looks like none.
STEP: Final = 2_654_435_761
_MOST_NUMBERS: Final = 1_000_000
_MOST_TRIES: Final = 32
# Further digits may be below what a float of 64 bits holds.
_DIGITS_THAT_COUNT: Final = 6
# Strings come first, so that a digit in one of them is no number. Digits of exponents stay: the number may overflow.
_JSON_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|-?(\d+(?:\.\d+)?)(?:[eE][+-]?\d+)?', re.DOTALL)
_DECIMAL: Final = re.compile(rb"-?(\d+(?:\.\d+)?)")
_DECIMAL_OPCODES: Final = frozenset({"FLOAT", "INT", "LONG"})
# Where the payload begins, behind the opcode and its length, and how many bytes of it may be changed, lowest first.
_BINARY_OPCODES: Final = {"BININT": (1, 2), "BININT1": (1, 1), "BININT2": (1, 2), "LONG1": (2, 1), "LONG4": (5, 1)}
_FLOAT_BITS: Final = (52, 51, 50)
_HIGHEST_FLOAT_BIT: Final = 62  # the one that makes another number even of a zero


class Change(NamedTuple):
    """One byte to write: where, which, and in words what it does."""

    at: int
    byte: int
    words: str


def change_in_json(text: bytes, variant: int) -> Change | None:
    """Return a digit of a number to change, chosen by `variant`; None where there is none to change."""
    spans = [m.span(1) for m in islice(_JSON_TOKENS.finditer(text), _MOST_NUMBERS) if m.group(1) is not None]
    if not spans or b"\0" in text[:4]:  # text of two or four bytes a character is left alone
        return None
    start, stop = spans[variant * STEP % len(spans)]
    return _digit(text, start, stop, variant)


def change_in_pickle(data: bytes, variant: int) -> Change | None:
    """Return a byte of a number to change so that the pickles in `data` still load, chosen by `variant`; None as above.

    Which numbers may be changed (the shape of an array may not) is found out by loading, inertly, at most some times.
    """
    numbers = list(islice(_numbers(data), _MOST_NUMBERS))
    for turn in range(min(_MOST_TRIES, len(numbers))):
        change = _payload_change(data, *numbers[(variant + turn) * STEP % len(numbers)], variant)
        if change is not None and _loads(data[: change.at] + bytes([change.byte]) + data[change.at + 1 :]):
            return change
    return None


def zeros_in_pickle(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where each number stands in the pickles in `data`, and the bytes of the same length that make it zero."""
    for opcode, at in islice(_numbers(data), _MOST_NUMBERS):
        if opcode in _DECIMAL_OPCODES:
            match = _DECIMAL.match(data, at + 1)
            if match is not None:
                yield match.start(1), bytes(48 if 48 <= byte < 58 else byte for byte in match[1])  # noqa: PLR2004 - digits
        elif opcode == "BINFLOAT":
            yield at + 1, bytes(8)
        else:
            start, num_bytes = _place_of_payload(data, opcode, at)
            yield at + start, bytes(num_bytes)


def _place_of_payload(data: bytes, opcode: str, at: int) -> tuple[int, int]:
    """Return how far behind the opcode at `at` the bytes of a whole number begin, and how many they are."""
    if opcode == "LONG1":
        return 2, data[at + 1]
    if opcode == "LONG4":
        return 5, int.from_bytes(data[at + 1 : at + 5], "little")
    return 1, {"BININT": 4, "BININT1": 1, "BININT2": 2}[opcode]


def _numbers(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield the opcode and the place of each number in pickles that lie behind each other, up to where one is none."""
    stream = io.BytesIO(data)
    try:
        while stream.tell() < len(data):
            for opcode, argument, at in pickletools.genops(stream):
                is_number = opcode.name in _BINARY_OPCODES or opcode.name in {"BINFLOAT", *_DECIMAL_OPCODES}
                # An empty LONG1 is a zero without a byte, and the text of a bool must stay.
                is_empty = opcode.name in {"LONG1", "LONG4"} and not argument
                if at is not None and is_number and not is_empty and not isinstance(argument, bool):
                    yield opcode.name, at
    except ValueError:
        return


def _payload_change(data: bytes, opcode: str, at: int, variant: int) -> Change | None:
    """Return what to change in the number that an opcode at `at` pushes."""
    if opcode in _DECIMAL_OPCODES:
        match = _DECIMAL.match(data, at + 1)
        return None if match is None else _digit(data, *match.span(1), variant)
    if opcode == "BINFLOAT":
        is_zero = data[at + 1] & 0x7F == 0 and not any(data[at + 2 : at + 9])
        bit = _HIGHEST_FLOAT_BIT if is_zero else _FLOAT_BITS[variant % len(_FLOAT_BITS)]
        return _bit(data, at + 8 - bit // 8, bit % 8)
    start, num_bytes = _BINARY_OPCODES[opcode]
    bit = variant % (num_bytes * 8)
    return _bit(data, at + start + bit // 8, bit % 8)


def _bit(data: bytes, at: int, bit: int) -> Change:
    """Return the change of one bit of the byte at `at`, which is part of a number."""
    return Change(at, data[at] ^ (1 << bit), f"bit {bit} of byte {at:,} (of a pickled number)")


def _digit(data: bytes, start: int, stop: int, variant: int) -> Change:
    """Return the change of one of the first digits of a decimal number; its first never becomes a leading zero."""
    places = [at for at in range(start, stop) if data[at : at + 1].isdigit()][:_DIGITS_THAT_COUNT]
    at = places[variant % len(places)]
    may_lead = at == start and data[at + 1 : at + 2].isdigit() and at + 1 < stop
    others = [digit for digit in b"0123456789" if digit != data[at] and not (may_lead and digit == ord("0"))]
    new = others[variant * STEP % len(others)]
    return Change(at, new, f"the digit {data[at] - ord('0')} at byte {at:,} (now {new - ord('0')})")


def _loads(data: bytes) -> bool:
    """Tell whether the pickles in `data` can still be read."""
    stream = io.BytesIO(data)
    try:
        while stream.tell() < len(data):
            load_next(stream)
    except (DamagedError, UnjudgeableError):
        return False
    return True

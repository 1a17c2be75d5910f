"""Reads plain pickles and JSON: structures without a container around them."""

from __future__ import annotations

import io
import json

from chaos.checkpoints.contents import Contents, structured
from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.leaves import clean_name
from chaos.checkpoints.pickles import MAX_PICKLE_BYTES, load_next
from chaos.checkpoints.window import Window

MAX_PICKLES = 100_000
INDEX_SUFFIX = ".index.json"
# A log that is only appended to is torn by a kill as a matter of course, and its reader may cut that off.
TORN_RECORD = "it ends in a torn record"


def read_pickles(window: Window) -> Contents:
    """Return the contents of a file with one or more pickles behind each other; raises DamagedError.

    A file cut exactly between two pickles is whole as far as anybody can tell; raises UnjudgeableError for one that is
    damaged behind a whole pickle.
    """
    stream = io.BytesIO(_whole_text(window))
    values: list[object] = []
    while stream.tell() < window.size:
        if len(values) >= MAX_PICKLES:
            raise UnjudgeableError(f"it has more than {MAX_PICKLES} pickles")
        try:
            values.append(load_next(stream))
        except DamagedError as error:
            if values:
                raise UnjudgeableError(TORN_RECORD) from error
            raise
    return structured("pickle", values[0] if len(values) == 1 else values)


def read_json(window: Window) -> Contents:
    """Return the contents of a JSON file; raises DamagedError. An index of sharded weights also tells what it needs.

    A file with an object or a list on each line is the list of them; raises UnjudgeableError where its last is torn.
    """
    text = _whole_text(window)
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise UnjudgeableError("it is nested too deeply to be read here") from error
    except ValueError as error:
        value = _json_lines(text)
        if value is None:
            raise DamagedError("it is no JSON, or cut short") from error
    contents = structured("json", value)
    if window.path.name.endswith(INDEX_SUFFIX) and isinstance(value, dict):
        contents.needed = _needed(value.get("weight_map"))
    return contents


def _json_lines(text: bytes) -> list[object] | None:
    """Return the records of JSON lines (None: these are none); raises UnjudgeableError when only the last is torn."""
    first, *others = text.split(b"\n")
    while others and not others[-1].strip():
        others.pop()
    if not (others and isinstance(_record(first), dict | list)):
        return None
    values = [_record(line) for line in (first, *others)]
    if not all(isinstance(value, dict | list) for value in values[:-1]):
        return None
    if not isinstance(values[-1], dict | list):
        raise UnjudgeableError(TORN_RECORD)
    return values


def _record(line: bytes) -> object:
    """Return the value on one line, None where there is none."""
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value


def _needed(weight_map: object) -> dict[str, tuple[str, ...]]:
    """Return which names each file of a sharded checkpoint must hold, by an index's `weight_map` (name to file)."""
    needed: dict[str, list[str]] = {}
    if isinstance(weight_map, dict):
        for name, file in weight_map.items():
            needed.setdefault(clean_name(str(file)), []).append(clean_name(name))
    return {file: tuple(names) for file, names in needed.items()}


def _whole_text(window: Window) -> bytes:
    """Return all bytes; raises UnjudgeableError when they are too many to be read at once."""
    if window.size > MAX_PICKLE_BYTES:
        raise UnjudgeableError(f"it has {window.size} bytes, more than are read at once in this format")
    return window.read(0, window.size)

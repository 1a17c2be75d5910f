"""Say what is wrong with a text that a user wrote: which file, which key, and what was probably meant.

Used for scenarios and settings alike, so that every such error reads the same way. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import NoReturn

from chaos.errors import UsageError
from chaos.model import Record

_PLAIN_TYPES = {
    "object": "a table",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}


class Place(Record, kw_only=True):
    """Where a text comes from: a file's name, or the command line, whose keys are spelled as options."""

    source: str
    is_command_line: bool = False

    def fail(self, key: str, problem: str, hint: str = "") -> NoReturn:
        """Raise a `UsageError` that names this source and `key` (which may be empty: all of it)."""
        if self.is_command_line:
            option = key.rpartition(".")[2].replace("_", "-")
            where = "the command after `--`" if option == "command" else f"`--{option}`"
            raise UsageError(f"{where}: {problem}", hint=hint)
        raise UsageError(f"{self.source}: `{key}`: {problem}" if key else f"{self.source}: {problem}", hint=hint)


class Grammar(Record, kw_only=True):
    """What may be written: the keys of each table by key path, and the words of each key that takes one of a few."""

    tables: Mapping[str, tuple[str, ...]]
    choices: Mapping[str, tuple[str, ...]]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `Did you mean ...?` for the nearest known word, or an empty string where none is near."""
    near = difflib.get_close_matches(word, tuple(known), n=1, cutoff=0.6)
    return f"Did you mean `{near[0]}`?" if near else ""


def explain(place: Place, grammar: Grammar, message: str) -> NoReturn:
    """Turn a message of msgspec (`Expected ..., got ... - at $.target.step`) into a `UsageError` with a hint."""
    problem, _, where = message.partition(" - at ")
    key = where.rpartition("`$")[2].rstrip("`").lstrip(".").replace("[...]", "")
    table = re.sub(r"\[.*?\]", "", key)
    if unknown := re.search(r"unknown field `(.*)`", problem):
        _fail_unknown_key(place, grammar, table, unknown[1])
    if missing := re.search(r"missing required field `(.*)`", problem):
        place.fail(f"{key}.{missing[1]}".lstrip("."), "is missing")
    if invalid := re.match(r"Invalid enum value '?(.*?)'?$", problem):
        known = grammar.choices[table.rpartition(".")[2]]
        hint = f"{did_you_mean(invalid[1], known)} Known: {', '.join(known)}.".strip()
        place.fail(key, f"`{invalid[1]}` is not known", hint)
    is_line = "Expected `array`, got `str`" in problem
    hint = 'Write a list of words, such as ["python", "train.py", "{out}"].' if is_line else ""
    plain = re.sub(r"`([a-z| ]+)`", _plain_type, problem)
    place.fail(key, plain[:1].lower() + plain[1:], hint)


def _plain_type(found: re.Match[str]) -> str:
    """Return a type's name as a user of TOML knows it."""
    words = found[1].removesuffix(" | null").split(" | ")
    return " or ".join(_PLAIN_TYPES.get(word, word) for word in words)


def _fail_unknown_key(place: Place, grammar: Grammar, table: str, key: str) -> NoReturn:
    """Raise for an unknown key, naming the table that it belongs in, or the nearest known one."""
    homes = [
        f"in [{name}]" if name else "at the top, before any table"
        for name, keys in grammar.tables.items()
        if key in keys
    ]
    known = grammar.tables[table]
    hint = f"It belongs {homes[0]}." if homes else did_you_mean(key, known)
    place.fail(f"{table}.{key}".lstrip("."), "is not a known key", hint or f"Known: {', '.join(known)}.")

"""Read a command line as the Python interpreter reads it: its options, and what it is to run."""

from __future__ import annotations

import os
import re
import shlex
from enum import StrEnum
from pathlib import Path
from typing import Final

from chaos.errors import UsageError
from chaos.model import Record

_PYTHON: Final = re.compile(r"python(\d+(\.\d+)*)?t?")
_WITH_ARGUMENT: Final = "WX"
_WITHOUT_ARGUMENT: Final = "bBdEIOPqRsSuv"
_LONG_WITH_ARGUMENT: Final = "--check-hash-based-pycs"
_HINT: Final = "use --lives fresh, which starts any command"


class Kind(StrEnum):
    """What the interpreter is told to run."""

    SCRIPT = "script"
    MODULE = "m"
    CODE = "c"


class PythonCommand(Record, kw_only=True):
    """A start of Python: `executable` is absolute, `name` the script's path, the module's name or the code."""

    executable: str
    options: tuple[str, ...]
    kind: Kind
    name: str
    arguments: tuple[str, ...]

    @property
    def own_package(self) -> str:
        """Return the top-level package that the module to run belongs to; empty for scripts and code."""
        return self.name.partition(".")[0] if self.kind is Kind.MODULE else ""


def read_python_command(executable: str, command: tuple[str, ...]) -> PythonCommand:
    """Read `command`, whose program is at `executable`; raises UsageError where it does not start Python itself."""
    if _PYTHON.fullmatch(Path(executable).name):
        return _read_words(executable, command[1:])
    interpreter = _interpreter_of(Path(executable))
    if interpreter is None:
        message = f"warm lives need a command that starts Python itself, and `{command[0]}` is another program"
        raise UsageError(message, hint=_HINT)
    return _read_words(interpreter[0], (*interpreter[1:], executable, *command[1:]))


def _interpreter_of(script: Path) -> tuple[str, ...] | None:
    """Return the words of a script's first line if it names a Python, with its absolute path; else None."""
    with script.open("rb") as file:
        line = file.readline(1024)
    if not line.startswith(b"#!"):
        return None
    words = shlex.split(line[2:].decode("utf-8", "replace"))
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S"]
        words[:1] = [_on_path(word) for word in words[:1]]
    if words and _PYTHON.fullmatch(Path(words[0]).name) and Path(words[0]).is_absolute():
        return tuple(words)
    return None


def _on_path(program: str) -> str:
    """Return where a program is, or its name if it is nowhere."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if (found := Path(folder) / program).is_file():
            return str(found.absolute())
    return program


def _read_words(executable: str, words: tuple[str, ...]) -> PythonCommand:
    """Split the words after the interpreter into its options and what it runs."""
    options: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            return _running(executable, options, Kind.SCRIPT, word, rest)
        if word == _LONG_WITH_ARGUMENT and rest:
            options += [word, rest.pop(0)]
            continue
        kind, inner = _read_cluster(word, rest, options)
        if kind is not None:
            name = inner or (rest.pop(0) if rest else "")
            return _running(executable, options, kind, name, rest)
    return _running(executable, options, Kind.SCRIPT, "-", [])


def _read_cluster(word: str, rest: list[str], options: list[str]) -> tuple[Kind | None, str]:
    """Take one word of short options apart, such as `-uB` or `-Wignore`; stop at -m or -c, with what follows it."""
    for position, letter in enumerate(word[1:], start=1):
        if letter in "mc":
            if position > 1:
                options.append(word[:position])
            return Kind(letter), word[position + 1 :]
        if letter in _WITH_ARGUMENT:
            options.append(word)
            if position == len(word) - 1 and rest:
                options.append(rest.pop(0))
            return None, ""
        if letter not in _WITHOUT_ARGUMENT:
            message = f"warm lives cannot do what Python's option `{word}` asks for"
            raise UsageError(message, hint=_HINT)
    options.append(word)
    return None, ""


def _running(executable: str, options: list[str], kind: Kind, name: str, arguments: list[str]) -> PythonCommand:
    """Make the record; UsageError where the program would come from standard input."""
    if name in ("", "-") and kind is Kind.SCRIPT:
        message = "warm lives need a script or a module: this command lets Python read its program from standard input"
        raise UsageError(message, hint=_HINT)
    return PythonCommand(
        executable=executable, options=tuple(options), kind=kind, name=name, arguments=tuple(arguments)
    )

"""Find the programs and the folder of a target on this machine, once, before anything is started."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from chaos.errors import UsageError
from chaos.model import Target

OUT = "{out}"
PYTHON = "{python}"


def resolve_command(command: tuple[str, ...], *, environment: Mapping[str, str], folder: str) -> tuple[str, ...]:
    """Return `command` with its program as an absolute path, as it is found from `folder`.

    `{python}` is the interpreter that runs `chaos`; so is a bare `python` or `python3` unless an environment is
    active (VIRTUAL_ENV, CONDA_PREFIX), whose own comes first on PATH. Raises `UsageError` where there is no such
    program.
    """
    program = command[0]
    is_environment_active = bool(environment.get("VIRTUAL_ENV") or environment.get("CONDA_PREFIX"))
    if program == PYTHON or (program in {"python", "python3"} and not is_environment_active):
        return (sys.executable, *command[1:])
    is_path = "/" in program
    if OUT in program or (is_path and OUT in folder):
        return command  # only a trial's own folder can tell
    where = os.path.join(folder, program) if is_path else program  # noqa: PTH118 - keeps `..` as typed
    found = shutil.which(where, path=environment.get("PATH", os.defpath))
    if found is None:
        problem = (
            "is not on PATH" if not is_path else "cannot be executed" if Path(where).exists() else "does not exist"
        )
        raise UsageError(f"the command `{program}` {problem}", hint="Check its spelling, or give its full path.")
    return (os.path.abspath(found), *command[1:])  # noqa: PTH100 - `resolve` would leave a virtual environment


def resolve_target(target: Target) -> Target:
    """Return `target` with programs as absolute paths and, for a user's own command, the folder that it runs in.

    A relative `cwd` is taken from the current folder. Raises `UsageError` where a program or the folder does not exist.
    """
    folder = target.cwd if OUT in target.cwd else os.path.abspath(target.cwd)  # noqa: PTH100 - links stay as typed
    if OUT not in folder and not Path(folder).is_dir():
        raise UsageError(f"the folder `{target.cwd}` that the command should run in does not exist")
    environment = os.environ | target.env

    def resolved(command: tuple[str, ...]) -> tuple[str, ...]:
        """Resolve one of the target's commands, if it has it."""
        return resolve_command(command, environment=environment, folder=folder) if command else ()

    is_own = target.command[0] != PYTHON
    return msgspec.structs.replace(
        target,
        command=resolved(target.command),
        resume_command=resolved(target.resume_command),
        no_save_command=resolved(target.no_save_command),
        verify=resolved(target.verify),
        cwd=folder if is_own or target.cwd else "",
    )

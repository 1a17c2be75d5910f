"""Runs the system's programs that make and mount file systems; what goes wrong is said with what to do about it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Final

from chaos.errors import HarnessError

_DEADLINE_S: Final = 60.0
_HINTS: Final = {
    "unknown filesystem type": "the running kernel lacks it: load its module (modprobe), or choose another with --fs",
    "loop device": "allow loop devices: modprobe loop; in a container, start that with --privileged",
    "superuser": "run it as root (sudo); in a container, start that with --privileged",
    "permi": "run it as root (sudo); in a container, start that with --privileged",
    "denied": "run it as root (sudo); in a container, start that with --privileged",
    "no space": "free some space, or choose another folder for the images",
    "busy": "a process still has a file open there",
    "bad option": "the file system does not know one of the mount options",
}


def run_program(words: Sequence[str], *, package: str) -> None:
    """Run a program to its end; `package` is what Debian calls the package that it is in.

    Raises HarnessError where it is missing, fails, or takes longer than a minute.
    """
    program = shutil.which(words[0], path=os.environ.get("PATH", os.defpath))
    if program is None:
        hint = f"install it (Debian: apt-get install {package}), and see that /usr/sbin is in PATH"
        raise HarnessError(f"{words[0]} is missing", hint=hint)
    try:
        done = subprocess.run(
            [program, *words[1:]],
            capture_output=True,
            check=False,
            timeout=_DEADLINE_S,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired as error:
        message = f"`{' '.join(words)}` did not end within {_DEADLINE_S:.0f} s"
        raise HarnessError(message, hint="the machine may be overloaded, or its disk hang") from error
    except OSError as error:
        message = f"{words[0]} could not be run: {error.strerror}"
        raise HarnessError(message, hint=f"reinstall it (Debian: apt-get install {package})") from error
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split()) or f"exit status {done.returncode}"
        raise HarnessError(f"`{' '.join(words)}` failed: {said}", hint=_hint_for(said))


def _hint_for(said: str) -> str:
    """Return what to do about a program's complaint."""
    lowered = said.lower()
    return next((hint for word, hint in _HINTS.items() if word in lowered), "see `dmesg` for what the kernel says")

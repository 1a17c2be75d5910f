"""Tells which checkpoints `torch.load(weights_only=True)` refuses: a program, the only one here that imports torch.

    python -P -m chaos.checkpoints.weights_only PATH...

prints one JSON object: each path with null, or with the reason why torch refuses it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.formats import Format
from chaos.checkpoints.members import format_of_member, members_of
from chaos.checkpoints.program import ask_program
from chaos.errors import HarnessError

REASON_CHARACTERS = 300
UNPICKLER_SAYS = "WeightsUnpickler error:"
COMMAND = (sys.executable, "-P", "-m", "chaos.checkpoints.weights_only")


def torch_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files in torch's format among `paths` and in the folders among them."""
    files: list[Path] = []
    for path in paths:
        with suppress(OSError, DamagedError, UnjudgeableError):
            members = [member for member in members_of(path) if not member.is_distributed]
            files += (member.path for member in members if format_of_member(member) is Format.TORCH)
    return files


def refused_by_weights_only(paths: Sequence[Path], deadline_s: float) -> dict[str, str]:
    """Return which torch files `torch.load(weights_only=True)` refuses, with its reason; other formats are left out.

    Torch is imported in a process of its own. Raises HarnessError when that process fails or takes longer than
    `deadline_s`.
    """
    files = torch_files(paths)
    if not files:
        return {}
    try:
        answer = ask_program((*COMMAND, *map(str, files)), deadline_s)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"torch did not finish reading {len(files)} checkpoints in {deadline_s:g} s") from error
    if answer.status != 0:
        raise HarnessError("torch could not be asked which checkpoints it refuses", hint="Is torch installed here?")
    refused: dict[str, str | None] = json.loads(answer.output)
    return {path: reason for path, reason in refused.items() if reason is not None}


def refusal(path: str) -> str | None:
    """Return why torch refuses to load a file with `weights_only=True`, None when it loads."""
    import torch

    try:
        torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # noqa: BLE001 - whatever it raises is its refusal
        return _short_reason(error)
    return None


def _short_reason(error: Exception) -> str:
    """Return the telling part of torch's long advice: what the unpickler met, else the first line."""
    text = str(error).strip()
    telling = text.partition(UNPICKLER_SAYS)[2] or text
    return f"{type(error).__name__}: {telling.strip().partition(chr(10))[0]}"[:REASON_CHARACTERS]


def main(paths: Sequence[str]) -> int:
    """Print a JSON object of path and reason for all paths."""
    sys.stdout.write(json.dumps({path: refusal(path) for path in paths}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The training script that all tools are given, and how it is started."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from chaos.model import Target

from .records import Script

TARGETS: Final = Path(__file__).parents[1] / "targets"
OUT: Final = "{out}"
CHECKPOINT: Final = "ckpt.pt"
FINAL: Final = "final.pt"


def command_of(script: Script, out: str = OUT) -> tuple[str, ...]:
    """Return the command that trains into `out`; it resumes by itself."""
    return (sys.executable, str(TARGETS / "training.py"), out, *script.options)


def target_of(script: Script) -> Target:
    """Return the script as a target of the harness's own parts."""
    command = command_of(script)
    return Target(command=command, resume_command=command, checkpoints=(CHECKPOINT,), final=(FINAL,))

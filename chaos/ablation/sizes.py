"""What the trainer's files hold, and what half precision does to its logits, which only torch can tell."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from chaos.ablation.lives import RESUME, WEIGHTS
from chaos.ablation.weights import PREFIX
from chaos.checkpoints.members import members_of, open_member
from chaos.checkpoints.program import ask_program
from chaos.errors import HarnessError
from chaos.model import Record
from chaos.reports.ablation import AblationSizes

_OPTIMIZER: Final = "optimizer."
_DEADLINE_S: Final = 120.0


class _HalfPrecision(Record, kw_only=True):
    """What `python -P -m trainer.half` prints."""

    step: int
    logits: int
    largest: float
    mean: float
    loss: float
    half_loss: float


def sizes_of(out: Path) -> AblationSizes:
    """Return the sizes of what a finished run left in `out`; raises HarnessError where they cannot be told."""
    with ExitStack() as stack:
        tensors = open_member(members_of(out / RESUME)[0], stack).tensors
        sizes = {name: tensor.size_bytes for name, tensor in tensors.items()}
    half = _half_precision(out)
    return AblationSizes(
        weights_bytes=sum(size for name, size in sizes.items() if name.startswith(PREFIX)),
        optimizer_bytes=sum(size for name, size in sizes.items() if name.startswith(_OPTIMIZER)),
        resume_file_bytes=(out / RESUME).stat().st_size,
        half_file_bytes=(out / WEIGHTS).stat().st_size,
        logits=half.logits,
        largest_logit_difference=half.largest,
        mean_logit_difference=half.mean,
        loss=half.loss,
        half_loss=half.half_loss,
    )


def _half_precision(out: Path) -> _HalfPrecision:
    """Ask the trainer, in a process of its own, how far the logits move."""
    try:
        answer = ask_program((sys.executable, "-P", "-m", "trainer.half", "--out", str(out)), _DEADLINE_S)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"the logits were not compared within {_DEADLINE_S:g} s") from error
    if answer.status != 0:
        said = answer.complaint.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise HarnessError(f"the logits could not be compared: {said}", hint="please report this")
    return msgspec.json.decode(answer.output, type=_HalfPrecision)

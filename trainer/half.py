"""What half precision costs: `python -P -m trainer.half --out DIR` prints one JSON line about a finished run.

The logits of the fp32 weights in resume.pt are held against those of the half-precision weights in weights.pt, on the
fixed batches of the held-out text.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from trainer import checkpoint, data
from trainer.checkpoint import RESUME, RESUME_FORMAT, WEIGHTS, WEIGHTS_FORMAT, DamagedError, Payload
from trainer.model import LanguageModel
from trainer.options import Options, TrainerError


def logits_of(options: Options, weights: Payload, tokens: Tensor) -> Tensor:
    """Return the logits (B, T, 256) that a model with `weights`, whatever their precision, gives for `tokens` (B, T).

    The model computes in fp32: what differs is only how the weights were stored.
    """
    model = LanguageModel(options)
    model.load_state_dict(weights)
    model.eval()
    with torch.no_grad():
        logits: Tensor = model(tokens)  # (B, T, 256)
    return logits


def compare(out: Path, text_file: Path | None) -> dict[str, int | float]:
    """Return step, number of logits, their largest and mean absolute difference, and the loss in nats of either.

    Raises TrainerError where a file is missing or damaged, or the two files or the text are not of one run.
    """
    resume, half = (_read(out / name, kind) for name, kind in ((RESUME, RESUME_FORMAT), (WEIGHTS, WEIGHTS_FORMAT)))
    if (resume["run_id"], resume["step"]) != (half["run_id"], half["step"]):
        raise TrainerError(f"{RESUME} and {WEIGHTS} in {out} are not of the same step of the same run")
    options = _options(out, text_file, resume["options"])
    text = data.load_text(options)
    if data.digest(text) != resume["options"]["data"]:
        raise TrainerError(f"the run in {out} was trained on another text: give it with --data FILE")
    tokens = data.evaluation_batch(data.split(text)[1], options.sequence)  # (16, T + 1)
    torch.set_num_threads(1)
    full, rounded = (logits_of(options, payload["model"], tokens[:, :-1]) for payload in (resume, half))
    difference = (full - rounded).abs()
    return {
        "step": resume["step"],
        "logits": difference.numel(),
        "largest": difference.max().item(),
        "mean": difference.mean().item(),
        "loss": _loss(full, tokens),
        "half_loss": _loss(rounded, tokens),
    }


def _read(path: Path, expected_format: str) -> Payload:
    """Return a file's content; raise TrainerError where it is not there, or not whole."""
    if not path.exists():
        raise TrainerError(f"{path} is missing: is there a finished run?")
    try:
        return checkpoint.read(path, expected_format)
    except DamagedError as error:
        raise TrainerError(f"{path} is damaged ({error})") from error


def _options(out: Path, text_file: Path | None, saved: dict[str, int]) -> Options:
    """Return the options that the model's form and the text depend on, as the run had them."""
    return Options(
        out=out,
        data=text_file,
        batch_size=saved["batch-size"],
        sequence=saved["sequence"],
        dim=saved["dim"],
        layers=saved["layers"],
        heads=saved["heads"],
        kv_heads=saved["kv-heads"],
    )


def _loss(logits: Tensor, tokens: Tensor) -> float:
    """Return the mean cross-entropy in nats of `tokens` (B, T + 1) under `logits` (B, T, 256)."""
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()


def main(argv: Sequence[str] | None = None) -> int:
    """Print the comparison as one JSON line and return the exit status: 0 done, 1 it could not be made."""
    parser = argparse.ArgumentParser(prog="trainer.half", description="Measure what half precision does to the logits.")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of resume.pt and weights.pt")
    parser.add_argument("--data", type=Path, metavar="FILE", help="the text of the run, if it had one of its own")
    chosen = parser.parse_args(argv)
    try:
        print(json.dumps(compare(chosen.out, chosen.data)))
    except (TrainerError, OSError) as error:
        print(f"trainer.half: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

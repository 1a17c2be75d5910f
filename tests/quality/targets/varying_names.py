"""Saves as it should, through temporary names with a pid and a time in them; a start removes those left over."""

import os
import sys
import time
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"


def save(training: Training) -> None:
    """Publish through a name that no other process and no other moment has."""
    temporary = out / f".ckpt.json.{os.getpid()}-{time.time_ns()}.tmp"
    publish(checkpoint, training.state(), temporary)


for stale in out.glob(".ckpt.json.*.tmp"):
    stale.unlink()
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, save)

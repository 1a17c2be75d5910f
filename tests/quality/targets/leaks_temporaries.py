"""Saves as it should, but through temporary names with a pid in them that no later start removes."""

import os
import sys
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"


def save(training: Training) -> None:
    """Publish through a name of this process."""
    publish(checkpoint, training.state(), out / f"ckpt.json.{os.getpid()}")


training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, save)

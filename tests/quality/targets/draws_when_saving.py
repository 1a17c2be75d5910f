"""Saves as it should, but draws from the training's generator when it does; `--no-save` trains without saving."""

import sys
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"


def save(training: Training) -> None:
    """Draw a number to look at the training, then publish."""
    if "--no-save" in sys.argv:
        return
    training.rng.random()
    publish(checkpoint, training.state())


training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, save)

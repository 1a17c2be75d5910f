"""Saves so that no loss of power loses it: a temporary name, a sync, a rename, and a sync of the folder."""

import os
import sys
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))


def save(training: Training) -> None:
    """Publish a state, and make its name durable too."""
    publish(checkpoint, training.state())
    folder = os.open(out, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


train(out, training, save)

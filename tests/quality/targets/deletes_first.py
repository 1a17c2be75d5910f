"""Removes the only checkpoint, and then publishes the new one as it should."""

import sys
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"


def save(training: Training) -> None:
    """Make room first."""
    checkpoint.unlink(missing_ok=True)
    publish(checkpoint, training.state())


training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, save)

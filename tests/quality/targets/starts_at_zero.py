"""Overwrites its only checkpoint in place, and starts from 0 without a word where that cannot be read."""

import sys
from pathlib import Path

from training import Training, read, train, write

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
try:
    training.restore(read(checkpoint))
except (OSError, ValueError):
    training = Training()
train(out, training, lambda training: write(checkpoint, training.state()))

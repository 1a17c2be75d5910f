"""Overwrites its only checkpoint where it stands."""

import sys
from pathlib import Path

from training import Training, read, train, write

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, lambda training: write(checkpoint, training.state()))

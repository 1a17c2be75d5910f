"""Saves through a temporary name, a sync and a rename, and restores everything."""

import sys
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, lambda training: publish(checkpoint, training.state()))

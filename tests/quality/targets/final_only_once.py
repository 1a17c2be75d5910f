"""Saves as it should, but takes a final file that is there for a whole one, however its writing ended."""

import sys
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
if (out / "final.json").exists():
    sys.exit(0)
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, lambda training: publish(checkpoint, training.state()))

"""Saves as it should, but forgets the generator's state."""

import sys
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore({**read(checkpoint), "generator": training.rng.getstate()})
train(out, training, lambda training: publish(checkpoint, training.state()))

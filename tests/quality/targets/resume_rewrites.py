"""Saves as it should, but each start writes the checkpoint that it has read back onto itself, in place."""

import sys
from pathlib import Path

from training import Training, publish, read, train, write

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    state = read(checkpoint)
    write(checkpoint, state)
    training.restore(state)
train(out, training, lambda training: publish(checkpoint, training.state()))

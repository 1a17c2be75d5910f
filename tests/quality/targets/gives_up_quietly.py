"""Overwrites its only checkpoint in place; where that cannot be read it says so and ends with exit status 0."""

import sys
from pathlib import Path

from training import Training, read, say, train, write

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
try:
    if checkpoint.exists():
        training.restore(read(checkpoint))
    train(out, training, lambda training: write(checkpoint, training.state()))
except ValueError as error:
    say(f"cannot go on: {error}")

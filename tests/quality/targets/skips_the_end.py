"""Saves as it should, but a resumed run stops two steps early, with exit status 0."""

import sys
from pathlib import Path

import training as module
from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
    module.STEPS -= 2
train(out, training, lambda training: publish(checkpoint, training.state()))

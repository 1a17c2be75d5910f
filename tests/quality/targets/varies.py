"""Saves as it should, but its weights come out differently in every run."""

import random
import sys
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
training.weights = [random.SystemRandom().random() for _ in training.weights]
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, lambda training: publish(checkpoint, training.state()))

"""Saves as it should, with the time of day in its checkpoint and in its final file."""

import sys
import time
from pathlib import Path

from training import Training, publish, read, train, write

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, lambda training: publish(checkpoint, {**training.state(), "saved_at": time.time_ns()}))
write(out / "final.json", {"weights": training.weights, "saved_at": time.time_ns()})

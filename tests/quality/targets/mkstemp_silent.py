"""Saves atomically through `mkstemp`, prints its steps only, and restores all of its state."""

import json
import os
import sys
import tempfile
from pathlib import Path

from training import Training, read, say, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))


def save(training: Training) -> None:
    """Write to a file of a random name, and rename it."""
    descriptor, name = tempfile.mkstemp(dir=out)
    os.close(descriptor)
    Path(name).write_text(json.dumps(training.state()))
    Path(name).replace(checkpoint)


train(out, training, save, say=lambda line: say(line) if line.startswith("step") else None)

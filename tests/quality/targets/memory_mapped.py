"""Writes its checkpoint through a shared mapping, which no system call shows."""

import json
import mmap
import sys
from pathlib import Path

from training import Training, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
SIZE_BYTES = 1 << 16


def save(training: Training) -> None:
    """Give the file its full length, then write through memory."""
    data = json.dumps(training.state()).encode().ljust(SIZE_BYTES)
    with checkpoint.open("a+b") as file:
        file.truncate(SIZE_BYTES)
        with mmap.mmap(file.fileno(), SIZE_BYTES) as memory:
            memory[:] = data


training = Training()
if checkpoint.exists() and checkpoint.read_bytes().strip(b"\0"):
    training.restore(json.loads(checkpoint.read_bytes()))
train(out, training, save)

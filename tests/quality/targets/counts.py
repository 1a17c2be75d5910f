"""Writes with one system call, and looks at its count or does not: the second argument is `looks` or `ignores`."""

import json
import os
import sys
from pathlib import Path

from training import Training, read, train

out, how = Path(sys.argv[1]), sys.argv[2]
checkpoint, before, temporary = out / "ckpt.json", out / "ckpt_before.json", out / "ckpt.json.tmp"


def save(training: Training) -> None:
    """Write and sync a state, keep the one before, and put the new one in its place."""
    data = json.dumps(training.state()).encode()
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    written = os.write(fd, data)
    while how == "looks" and written < len(data):
        written += os.write(fd, data[written:])
    os.fsync(fd)
    os.close(fd)
    if checkpoint.exists():
        before.unlink(missing_ok=True)
        before.hardlink_to(checkpoint)
    temporary.replace(checkpoint)


training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, save)

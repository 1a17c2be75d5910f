"""Takes a lock file at its start, and waits for ever where a dead process has left one."""

import os
import sys
import time
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint, lock = out / "ckpt.json", out / "lock"
while True:
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
        break
    except FileExistsError:
        time.sleep(0.1)
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, lambda training: publish(checkpoint, training.state()))
lock.unlink()

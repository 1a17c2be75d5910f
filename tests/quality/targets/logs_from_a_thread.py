"""Saves as it should while a thread of its own writes a log into the output folder, as often as it can."""

import sys
import threading
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
is_over = threading.Event()


def log() -> None:
    """Write lines until the training is over."""
    with (out / "train.log").open("a", encoding="utf-8") as file:
        while not is_over.wait(0.001):
            file.write("still here\n")
            file.flush()


training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
thread = threading.Thread(target=log)
thread.start()
train(out, training, lambda training: publish(checkpoint, training.state()))
is_over.set()
thread.join()

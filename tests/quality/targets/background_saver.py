"""Saves in a thread while the training goes on; the thread says when it is done, and the end waits for it."""

import copy
import sys
import threading
from pathlib import Path

from training import EVERY, STEPS, Training, publish, read, say, write

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
saver: threading.Thread | None = None


def save(state: object, step: int) -> None:
    """Write, then say so."""
    publish(checkpoint, state)
    say(f"saved step {step}")


training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
while training.step < STEPS:
    training.advance()
    say(f"step {training.step}")
    if training.step % EVERY == 0:
        if saver:
            saver.join()
        saver = threading.Thread(target=save, args=(copy.deepcopy(training.state()), training.step))
        saver.start()
if saver:
    saver.join()
write(out / "final.json", training.weights)

"""Saves as it should, and shows its steps in a progress bar on standard error that is drawn over and over."""

import sys
from pathlib import Path

from training import EVERY, STEPS, Training, publish, read, say, write

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
while training.step < STEPS:
    training.advance()
    sys.stderr.write(f"\r{training.step / STEPS:4.0%} |{'#' * training.step:<{STEPS}}| step {training.step}/{STEPS}")
    sys.stderr.flush()
    if training.step % EVERY == 0:
        publish(checkpoint, training.state())
        say(f"saved step {training.step}")
write(out / "final.json", training.weights)

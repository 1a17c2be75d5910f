"""Saves as it should, but prints a step line only now and then, counts from 0, and says nothing of its saves."""

import sys
from pathlib import Path

from training import EVERY, STEPS, Training, publish, read, say, write

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
    say(f"resumed from {checkpoint.name} at step {training.step}")
while training.step < STEPS:
    if training.step % 5 == 0:
        say(f"step {training.step}/{STEPS}")
    training.advance()
    if training.step % EVERY == 0:
        publish(checkpoint, training.state())
write(out / "final.json", training.weights)
say("done")

"""Saves as it should; its steps are counted from 0, its saves name the step after, its last step is not saved."""

import sys
from pathlib import Path

from training import EVERY, STEPS, Training, publish, read, say, write

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
while training.step < STEPS + 1:
    say(f"Step {training.step}: loss {abs(training.weights[0]):.4f}")
    training.advance()
    if training.step % EVERY == 0:
        publish(checkpoint, training.state())
        say(f"Saved checkpoint at step {training.step}")
write(out / "final.json", training.weights)

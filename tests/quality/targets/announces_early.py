"""Says that a save is done before it begins to write it, which it then does as it should."""

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
    say(f"step {training.step}")
    if training.step % EVERY == 0:
        say(f"saved step {training.step}")
        publish(checkpoint, training.state())
write(out / "final.json", training.weights)

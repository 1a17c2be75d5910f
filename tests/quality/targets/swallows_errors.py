"""Catches what goes wrong with a save, prints it, and goes on to a good end; how it goes on is the second argument."""

import sys
from pathlib import Path

from training import Training, publish, read, say, train

out, how = Path(sys.argv[1]), sys.argv[2]
checkpoint = out / "ckpt.json"
training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))


def save(training: Training) -> None:
    """Publish a state, whatever comes of it: try once, or until it is done."""
    for _ in range(1 if how == "once" else 1000):
        try:
            publish(checkpoint, training.state())
        except OSError as error:
            say(f"warning: {error.strerror}")
        else:
            return


train(out, training, save)

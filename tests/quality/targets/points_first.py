"""Points at a new checkpoint before it is written; the older ones stay, but no start looks at them."""

import sys
from pathlib import Path

from training import Training, publish, read, train, write

out = Path(sys.argv[1])


def save(training: Training) -> None:
    """Name the new file, then write it."""
    path = out / f"step_{training.step}.json"
    publish(out / "latest", path.name, out / "latest.tmp")
    write(path, training.state())


training = Training()
if (out / "latest").exists():
    training.restore(read(out / str(read(out / "latest"))))
train(out, training, save)

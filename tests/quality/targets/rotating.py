"""Saves into folders numbered by step, keeps two, and names the current one in a file `latest` that is renamed."""

import shutil
import sys
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])


def save(training: Training) -> None:
    """Write a new folder, then point at it, then remove what is too old."""
    folder = out / f"step_{training.step}"
    folder.mkdir(exist_ok=True)
    publish(folder / "state.json", training.state())
    publish(out / "latest", folder.name, out / "latest.tmp")
    for step in sorted(int(path.name.removeprefix("step_")) for path in out.glob("step_*"))[:-2]:
        shutil.rmtree(out / f"step_{step}")


training = Training()
if (out / "latest").exists():
    training.restore(read(out / read(out / "latest") / "state.json"))
train(out, training, save)

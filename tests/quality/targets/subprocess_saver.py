"""Saves by another program and waits for it; `--in-place` lets that write straight onto the only checkpoint."""

import json
import subprocess
import sys
from pathlib import Path

from training import Training, read, train

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"
way = 'cat > "$1"' if "--in-place" in sys.argv else 'cat > "$1.tmp" && mv "$1.tmp" "$1"'


def save(training: Training) -> None:
    """Hand the state to a shell."""
    subprocess.run(["/bin/sh", "-c", way, "sh", checkpoint], input=json.dumps(training.state()).encode(), check=True)


training = Training()
if checkpoint.exists():
    training.restore(read(checkpoint))
train(out, training, save)

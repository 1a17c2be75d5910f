"""A training of four steps, each saved: `--in-place` over the only checkpoint, `--random` with other bits each time."""

import json
import os
import random
import sys
from pathlib import Path

out = Path(sys.argv[1])
checkpoint = out / "ckpt.json"


def write(path: Path, value: object) -> None:
    """Write a value with one call."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, json.dumps(value).encode())
    os.close(fd)


def say(line: str) -> None:
    """Print a line with one call."""
    os.write(1, f"{line}\n".encode())


state = {"step": 0, "weights": [0.5] * 1000}
if checkpoint.exists():
    try:
        state = json.loads(checkpoint.read_text())
    except ValueError as error:
        sys.exit(f"ckpt.json cannot be read:\n  {error}")
while state["step"] < 4:
    state["step"] += 1
    noise = random.SystemRandom().random() if "--random" in sys.argv else state["step"]
    state["weights"] = [weight * 0.9 + noise * position for position, weight in enumerate(state["weights"])]
    say(f"step {state['step']}")
    if "--in-place" in sys.argv:
        write(checkpoint, state)
    else:
        write(out / "ckpt.json.tmp", state)
        (out / "ckpt.json.tmp").replace(checkpoint)
    say(f"saved step {state['step']}")
write(out / "final.json", state["weights"])

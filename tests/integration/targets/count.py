"""A training without torch: a chain of numbers, saved as JSON, atomically: `python count.py OUT`."""

# ruff: noqa: ANN001, ANN201, PTH105, PTH110, PTH118, PTH123, T201 - written as a user writes

import json
import os
import sys

out = sys.argv[1]
path = os.path.join(out, "ckpt.json")
step, value = 0, 1
if os.path.exists(path):
    with open(path, encoding="ascii") as file:
        state = json.load(file)
    step, value = state["step"], state["value"]


def store(name, content):
    """Write one file durably."""
    with open(name + ".tmp", "w", encoding="ascii") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name + ".tmp", name)


while step < 20:
    step += 1
    value = (value * 6364136223846793005 + step) % (1 << 53)
    print(f"step {step} loss {value / (1 << 53):.6f}", flush=True)
    if step % 5 == 0:
        store(path, {"step": step, "value": value, "pad": "x" * 9000})
        print(f"saved step {step}", flush=True)
store(os.path.join(out, "final.json"), {"value": value})

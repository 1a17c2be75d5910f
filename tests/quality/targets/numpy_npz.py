"""Trains with numpy alone and saves one archive of arrays, through a temporary name and a rename."""

import os
import sys
from pathlib import Path

import numpy as np

out = Path(sys.argv[1])
checkpoint, temporary = out / "ckpt.npz", out / "ckpt.tmp.npz"
rng = np.random.RandomState(3)
step, weights, momentum = 0, rng.standard_normal(3000), np.zeros(3000)
if checkpoint.exists():
    with np.load(checkpoint) as found:
        step, weights, momentum = int(found["step"]), found["weights"], found["momentum"]
        rng.set_state(("MT19937", found["keys"], int(found["position"]), 0, 0.0))
while step < 12:
    step += 1
    momentum = 0.9 * momentum + weights + rng.random_sample(3000)
    weights = weights - 0.01 * momentum
    print(f"step {step}", flush=True)  # noqa: T201 - a trainer prints
    if step % 3 == 0:
        _, keys, position, _, _ = rng.get_state()
        with temporary.open("wb") as file:
            np.savez(file, step=step, weights=weights, momentum=momentum, keys=keys, position=position)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(checkpoint)
        print(f"saved step {step}", flush=True)  # noqa: T201 - a trainer prints
np.savez(out / "final.npz", weights=weights)

"""Trains with numpy alone, out of sight of the probe; `--forget PART`: the resume does not use a part that was saved.

`--forget` takes momentum, step, generator, or hidden: state that the update needs, and that is not saved at all.
"""

import sys
from pathlib import Path

import numpy as np

out, forgotten = Path(sys.argv[1]), sys.argv[sys.argv.index("--forget") + 1] if "--forget" in sys.argv else ""
checkpoint, temporary = out / "ckpt.npz", out / "ckpt.tmp.npz"
save = np.savez_compressed if "--compressed" in sys.argv else np.savez
rng = np.random.RandomState(3)
step, weights, momentum, hidden = 0, rng.standard_normal(500), np.zeros(500), np.zeros(500)
if checkpoint.exists():
    with np.load(checkpoint) as found:
        weights = found["weights"]
        momentum = momentum if forgotten == "momentum" else found["momentum"]
        step = step if forgotten == "step" else int(found["step"])
        hidden = hidden if forgotten == "hidden" else found["hidden"]
        if forgotten != "generator":
            rng.set_state(("MT19937", found["keys"], int(found["position"]), 0, 0.0))
while step < 12:
    step += 1
    momentum = 0.9 * momentum + weights + rng.random_sample(500) / step
    hidden = 0.5 * hidden + momentum
    weights = weights - 0.01 * momentum - 0.001 * hidden
    print(f"step {step}", flush=True)  # noqa: T201 - a trainer prints
    if step % 3 == 0:
        _, keys, position, _, _ = rng.get_state()
        parts = {"step": step, "weights": weights, "momentum": momentum, "keys": keys, "position": position}
        parts |= {} if forgotten == "hidden" else {"hidden": hidden}
        with temporary.open("wb") as file:
            save(file, **parts)
        temporary.replace(checkpoint)
        print(f"saved step {step}", flush=True)  # noqa: T201 - a trainer prints
np.savez(out / "final.npz", weights=weights)

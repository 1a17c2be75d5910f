"""Goes through its data in epochs, and tells of each step what it depends on, with `--wrong` one that goes wrong later.

`--wrong`: the batches that a resume skips are skipped in every later epoch, too; the first steps are as they should be.
"""

import hashlib
import json
import os
import random
import sys
from pathlib import Path

from training import publish, say, write

STEPS, EPOCH = 16, 4
out, is_wrong = Path(sys.argv[1]), "--wrong" in sys.argv
checkpoint = out / "ckpt.json"
state = json.loads(checkpoint.read_text()) if checkpoint.exists() else {"step": 0, "skip": 0, "weights": [1.0] * 400}
resumed_at = state["step"]


def order(epoch: int) -> list[int]:
    """Return the batches of an epoch, in their order."""
    batches = list(range(EPOCH))
    random.Random(epoch).shuffle(batches)
    return batches


def batch_of(step: int) -> int:
    """Return the batch of a step; in a later epoch than that of the resume the wrong one is some too far on."""
    epoch, place = divmod(step, EPOCH)
    is_later = is_wrong and epoch > resumed_at // EPOCH
    return order(epoch)[(place + resumed_at % EPOCH * is_later) % EPOCH]


while state["step"] < STEPS:
    batch = batch_of(state["step"])
    digest = hashlib.sha256(json.dumps([state, batch]).encode()).hexdigest()[:16]
    state["weights"] = [0.9 * weight + 0.01 * batch * place for place, weight in enumerate(state["weights"])]
    state["step"] += 1
    with Path(os.environ["NINELIVES_TICKS"]).open("ab", buffering=0) as ticks:
        ticks.write(f"tick {digest}\n".encode())
    say(f"step {state['step']}")
    if state["step"] % 2 == 0:
        publish(checkpoint, state)
        say(f"saved step {state['step']}")
write(out / "final.json", state["weights"])

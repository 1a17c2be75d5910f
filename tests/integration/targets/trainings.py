"""Small trainings of many kinds: `python trainings.py FOLDER KIND ...` prints for each what all its numbers came to.

With the probe, each kind is a life of its own, whose ticks go to FOLDER/KIND.
"""

# ruff: noqa: NPY002, T201, ANN201 - written as a user writes

import contextlib
import json
import os
import random
import sys
from pathlib import Path

import numpy as np
import torch
import trainings_plain
import trainings_special


def main():
    """Train each kind from the same seeds."""
    folder, kinds = Path(sys.argv[1]), sys.argv[2:]
    torch.set_num_threads(1)
    running = sys.modules.get("ninelives_probe.running")
    for kind in kinds:
        torch.manual_seed(1)
        random.seed(2)
        np.random.seed(3)
        if running is not None:
            (folder / kind).touch()
            os.environ["NINELIVES_TICKS"] = str((folder / kind).absolute())  # for processes that are started
            running.restart(os.environ["NINELIVES_TICKS"])
        with contextlib.redirect_stdout(sys.stderr):
            train = getattr(trainings_plain, kind, None) or getattr(trainings_special, kind)
            result = train()
        print(json.dumps({kind: result}), flush=True)


if __name__ == "__main__":
    main()

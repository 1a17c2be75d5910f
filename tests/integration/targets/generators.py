"""Draw from generators that nobody has seeded, and compute on several threads: `python generators.py OUT HOW`."""

# ruff: noqa: NPY002, PTH118, PTH123 - written as a user writes

import json
import os
import random
import sys

import numpy as np
import torch

out, how = sys.argv[1], sys.argv[2]
if how == "draw":
    drawn = {"random": random.random(), "numpy": float(np.random.rand()), "torch": float(torch.rand(()))}
    drawn["hash"] = hash("a word")
else:
    torch.manual_seed(0)
    wide = torch.nn.Linear(512, 512)
    optimizer = torch.optim.AdamW(wide.parameters())
    for _ in range(3):
        loss = wide(torch.randn(256, 512)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - written as a user writes
    drawn = {"loss": loss.item().hex(), "weight": float(wide.weight.double().sum()), "pool": threads > 1}
    drawn["threads"] = torch.get_num_threads()
with open(os.path.join(out, "drawn.json"), "w") as file:
    json.dump(drawn, file)

"""Ways to save a checkpoint with torch: the old one is made and everything synced, then the new one is saved.

python torch_saves.py OUT WAY SIZE_BYTES SEED
"""

# ruff: noqa: PTH105 - the calls themselves are what this is about

from __future__ import annotations

import ctypes
import os
import sys

import torch
import torch.distributed.checkpoint as dcp

OUT, WAY, SIZE, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def state() -> dict[str, torch.Tensor]:
    """Return tensors that no other checkpoint has."""
    return {"weight": torch.randn(SIZE // 8), "bias": torch.randn(SIZE // 8)}


def settle() -> None:
    """Make everything durable: by POSIX, which lets sync return early, each thing by itself; and all of it at once."""
    for base, _, names in os.walk("."):
        for name in (".", *names):
            fd = os.open(f"{base}/{name}", os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
    fd = os.open(".", os.O_RDONLY)
    assert ctypes.CDLL(None).syncfs(fd) == 0
    os.close(fd)


def save_distributed(name: str) -> None:
    """Save a folder: a data file for each rank, which is one here, and `.metadata`."""
    dcp.save(state(), checkpoint_id=name, no_dist=True)


def save_renamed() -> None:
    """Save under a temporary name, and put it in place of the old one."""
    torch.save(state(), "model.pt.tmp")
    os.replace("model.pt.tmp", "model.pt")


WAYS = {
    "torch_in_place": (lambda: torch.save(state(), "model.pt"), lambda: torch.save(state(), "model.pt")),
    "torch_rename": (lambda: torch.save(state(), "model.pt"), save_renamed),
    "dcp": (lambda: save_distributed("step-1"), lambda: save_distributed("step-2")),
}

if __name__ == "__main__":
    os.chdir(OUT)
    torch.manual_seed(SEED)
    make_old, make_new = WAYS[WAY]
    make_old()
    settle()
    make_new()

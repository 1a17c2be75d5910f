"""A small PyTorch training that prints nothing; `--in-place` and `--forget-optimizer` let it do one thing wrong."""

import os
import sys
from pathlib import Path

import torch

out = Path(sys.argv[1])
checkpoint = out / "ckpt.pt"
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
step = 0


def save() -> None:
    """Write the checkpoint, in the way that the command line asks for."""
    state = {
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "rng": torch.get_rng_state(),
    }
    if "--in-place" in sys.argv:
        torch.save(state, checkpoint)
        return
    with (out / "ckpt.pt.tmp").open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    (out / "ckpt.pt.tmp").replace(checkpoint)


if checkpoint.exists():
    found = torch.load(checkpoint, weights_only=True)
    step = found["step"]
    model.load_state_dict(found["model"])
    torch.set_rng_state(found["rng"])
    if "--forget-optimizer" not in sys.argv:
        optimizer.load_state_dict(found["optimizer"])
while step < 12:
    batch = torch.randn(8, 32)
    loss = (model(batch).squeeze(1) - batch.sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % 3 == 0:
        save()
torch.save(model.state_dict(), out / "final.pt")

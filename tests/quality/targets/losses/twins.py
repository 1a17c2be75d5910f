"""Two critics of one shape, each with its own NAdam and its own exponential schedule, on the same hand-made batches.

Each is saved to a file of its own, `critic-0.pt` and `critic-1.pt`, and both step in each round. `--lose` lets it make
one mistake.
"""

from __future__ import annotations

from pathlib import Path

import torch
from saving import State, options, publish, read, say_saved, say_step
from torch import nn

STEPS, EVERY, BATCH = 24, 6, 10
LOSSES = ("swapped", "second-schedule", "products")


class Critic:
    """A network, its optimizer and its schedule."""

    def __init__(self, number: int) -> None:
        """Make one; the two begin with different weights."""
        torch.manual_seed(40 + number)
        self.number = number
        self.model = nn.Sequential(nn.Linear(6, 20), nn.SiLU(), nn.Linear(20, 1))
        self.optimizer = torch.optim.NAdam(self.model.parameters(), lr=4e-3, weight_decay=1e-3)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.93)

    def update(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Do one step and return the loss."""
        loss = nn.functional.huber_loss(self.model(x).squeeze(1), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss

    def state(self) -> State:
        """Return all of it."""
        parts = {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}
        return {name: part.state_dict() for name, part in parts.items()}


def restore(out: Path, critics: list[Critic], lose: str) -> int:
    """Load both critics and return the step that they are of."""
    found = [read(out / f"critic-{critic.number}.pt") for critic in critics]
    optimizers = [state["optimizer"] for state in found]
    if lose == "swapped":
        optimizers.reverse()  # as where the files are listed in the order of a folder
    for critic, state, optimizer in zip(critics, found, optimizers, strict=True):
        critic.model.load_state_dict(state["model"])
        if lose == "products":
            for entry in optimizer["state"].values():
                entry["mu_product"] = torch.ones(())
        critic.optimizer.load_state_dict(optimizer)
        critic.schedule.load_state_dict(state["schedule"])
    if lose == "second-schedule":
        critics[1].schedule.step()  # to bring the rate that was loaded into use, it is thought
    return int(found[0]["step"])


def main() -> None:
    """Train both to the last step."""
    out, lose = options(__doc__ or "", *LOSSES)
    draw = torch.Generator().manual_seed(9)
    x = torch.randn(STEPS * BATCH, 6, generator=draw)
    y = x[:, 0] * x[:, 1] + x[:, 2]
    critics = [Critic(0), Critic(1)]
    step = restore(out, critics, lose) if (out / "critic-1.pt").exists() else 0
    while step < STEPS:
        rows = slice(step * BATCH, (step + 1) * BATCH)
        losses = [critic.update(x[rows], y[rows] + 0.1 * critic.number) for critic in critics]
        step += 1
        say_step(step, losses[0] + losses[1])
        if step % EVERY == 0:
            for critic in critics:
                publish(out / f"critic-{critic.number}.pt", {**critic.state(), "step": step})
            say_saved(step)
    publish(out / "final.pt", {f"{c.number}.{k}": v for c in critics for k, v in c.model.state_dict().items()})


if __name__ == "__main__":
    main()

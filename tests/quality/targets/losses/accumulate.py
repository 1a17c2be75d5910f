"""Four micro-batches to an update, clipped, AdamW, OneCycleLR; saved by the number of micro-batches.

So a save can fall into a half-filled accumulation, whose gradients are then saved too. `--lose` lets it make one
mistake.
"""

from __future__ import annotations

import torch
from saving import State, options, publish, read, say_saved, say_step
from torch import nn

UPDATES, WINDOW, EVERY, BATCH = 28, 4, 30, 6
LOSSES = ("half-filled", "window", "cycle", "cycle-twice", "gradients-bf16")


class Training:
    """The model, its optimizer, its schedule, and how many micro-batches it has seen."""

    def __init__(self, lose: str) -> None:
        """Begin at micro-batch 0."""
        torch.manual_seed(17)
        self.lose = lose
        self.model = nn.Sequential(nn.Linear(12, 28), nn.GELU(), nn.Linear(28, 28), nn.GELU(), nn.Linear(28, 3))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.schedule = self.make_schedule()
        self.micro = self.updates = self.in_window = 0

    def make_schedule(self) -> torch.optim.lr_scheduler.OneCycleLR:
        """Return the schedule from its beginning."""
        return torch.optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr=8e-3, total_steps=UPDATES + 2, pct_start=0.3)

    def advance(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """Add one micro-batch, and update when four are together."""
        loss = nn.functional.cross_entropy(self.model(x), y)
        (loss / WINDOW).backward()
        self.micro += 1
        self.in_window += 1
        if self.in_window < WINDOW:
            return
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.schedule.step()
        self.in_window = 0
        self.updates += 1
        say_step(self.updates, loss)

    def state(self) -> State:
        """Return all of it, the half-filled accumulation too."""
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        if self.lose == "gradients-bf16":
            gradients = [gradient.to(torch.bfloat16) for gradient in gradients]
        parts = {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}
        saved: State = {name: part.state_dict() for name, part in parts.items()}
        return {**saved, "gradients": gradients, "micro": self.micro, "updates": self.updates}

    def restore(self, found: State) -> None:
        """Go on from a saved state."""
        self.model.load_state_dict(found["model"])
        self.optimizer.load_state_dict(found["optimizer"])
        self.micro, self.updates = found["micro"], found["updates"]
        self.in_window = 0 if self.lose == "window" else self.micro % WINDOW
        self.restore_schedule(found["schedule"])
        if self.lose in {"half-filled", "window"}:
            return
        for parameter, gradient in zip(self.model.parameters(), found["gradients"], strict=False):
            parameter.grad = gradient.to(parameter.dtype)

    def restore_schedule(self, saved: State) -> None:
        """Load the schedule."""
        if self.lose == "cycle":
            self.schedule = self.make_schedule()  # it belongs to the optimizer as it is now, it is thought
            return
        self.schedule.load_state_dict(saved)
        if self.lose == "cycle-twice":
            self.schedule.step()


def main() -> None:
    """Train to the last update."""
    out, lose = options(__doc__ or "", *LOSSES)
    draw = torch.Generator().manual_seed(4)
    x = torch.randn(240, 12, generator=draw)
    y = x[:, :3].argmax(1)
    training = Training(lose)
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists():
        training.restore(read(checkpoint))
    while training.updates < UPDATES:
        first = training.micro * BATCH % len(x)
        training.advance(x[first : first + BATCH], y[first : first + BATCH])
        if training.micro % EVERY == 0:
            publish(checkpoint, training.state())
            say_saved(training.updates)
    publish(out / "final.pt", training.model.state_dict())


if __name__ == "__main__":
    main()

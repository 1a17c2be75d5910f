"""A training with an exponential average of its weights: RMSprop (centred), weights and average in safetensors.

`weights.safetensors` holds both, `trainer.pt` the rest; the average is what is left at the end. `--lose` lets it make
one mistake.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from saving import State, options, publish, read, say_saved, say_step
from torch import nn

STEPS, EVERY, BATCH, DECAY = 36, 10, 8, 0.8
LOSSES = (
    "average-for-weights",
    "weights-fp16",
    "state-fp16",
    "stale-copy",
    "best-weights",
    "average",
    "one-layer",
    "state-int8",
)

Tensors = dict[str, torch.Tensor]


def in_eight_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as it comes back from 8 bits: each row has a scale of its own."""
    rows = tensor.reshape(tensor.shape[0], -1) if tensor.ndim > 1 else tensor.reshape(1, -1)
    scale = rows.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
    return ((rows / scale).round() * scale).reshape(tensor.shape)


class Training:
    """The model, its average and its optimizer."""

    def __init__(self, lose: str) -> None:
        """Begin at step 0."""
        torch.manual_seed(6)
        self.lose = lose
        self.model = nn.Sequential(nn.Linear(10, 26), nn.ELU(), nn.Linear(26, 26), nn.ELU(), nn.Linear(26, 2))
        self.average = self.copied()
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-3, alpha=0.95, centered=True)
        self.step = 0
        self.before = self.best = self.copied()
        self.lowest = float("inf")

    def copied(self) -> Tensors:
        """Return a copy of the weights as they are."""
        return {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    def advance(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Do one step, follow it with the average, and return the loss."""
        self.before = self.copied()
        loss = nn.functional.mse_loss(self.model(x), y)
        if loss.item() < self.lowest:
            self.lowest, self.best = loss.item(), self.before
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        for name, tensor in self.model.state_dict().items():
            self.average[name].lerp_(tensor, 1 - DECAY)
        self.step += 1
        return loss

    def save(self, out: Path) -> None:
        """Write both files."""
        weights = {"stale-copy": self.before, "best-weights": self.best}.get(self.lose, self.model.state_dict())
        if self.lose == "weights-fp16":
            weights = {name: tensor.half() for name, tensor in weights.items()}
        tensors = {f"model.{name}": tensor for name, tensor in weights.items()}
        tensors |= {f"average.{name}": tensor for name, tensor in self.average.items()}
        save_file(tensors, out / "weights.safetensors.tmp")
        (out / "weights.safetensors.tmp").replace(out / "weights.safetensors")
        publish(out / "trainer.pt", {"step": self.step, "lowest": self.lowest, "optimizer": self.kept()})
        say_saved(self.step)

    def kept(self) -> State:
        """Return what is kept of the optimizer's state."""
        saved: State = self.optimizer.state_dict()
        for number, state in saved["state"].items():
            moments = {name: tensor for name, tensor in state.items() if name != "step"}
            if self.lose == "state-fp16":
                moments = {name: tensor.half() for name, tensor in moments.items()}
            elif self.lose == "state-int8":
                moments = {name: in_eight_bits(tensor) for name, tensor in moments.items()}
            saved["state"][number] = {**state, **moments}
        return saved

    def restore(self, out: Path) -> None:
        """Go on from both files."""
        tensors, found = load_file(out / "weights.safetensors"), read(out / "trainer.pt")
        prefix = "average." if self.lose == "average-for-weights" else "model."
        weights = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        if self.lose == "one-layer":
            del weights["2.weight"]
        self.model.load_state_dict(weights, strict=self.lose != "one-layer")
        self.average = {n.removeprefix("average."): tensor for n, tensor in tensors.items() if n.startswith("average.")}
        if self.lose == "average":
            self.average = self.copied()
        self.optimizer.load_state_dict(found["optimizer"])
        self.step, self.lowest = found["step"], found["lowest"]


def main() -> None:
    """Train to the last step."""
    out, lose = options(__doc__ or "", *LOSSES)
    draw = torch.Generator().manual_seed(14)
    x = torch.randn(STEPS * BATCH, 10, generator=draw)
    y = torch.stack([x[:, 0] * x[:, 1], x[:, 2].sin()], 1)
    training = Training(lose)
    if (out / "trainer.pt").exists():
        training.restore(out)
    while training.step < STEPS:
        rows = slice(training.step * BATCH, (training.step + 1) * BATCH)
        say_step(training.step + 1, training.advance(x[rows], y[rows]))
        if training.step % EVERY == 0:
            training.save(out)
    save_file(training.average, out / "final.safetensors")


if __name__ == "__main__":
    main()

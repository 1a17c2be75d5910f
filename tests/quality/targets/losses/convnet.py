"""A small convolution network: SGD with momentum, batch norm, a shuffling loader with its own generator, StepLR.

Two files: `weights.pt`, and `trainer.pt` with the rest. To resume within an epoch the loader's generator is put back to
where the epoch began, and the batches that were seen are passed over. `--lose` lets it make one mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from saving import State, options, publish, read, say_saved, say_step
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS, EVERY = 32, 9
LOSSES = (
    "buffers",
    "position",
    "one-batch",
    "loader-generator",
    "epoch-start",
    "momentum-of-convolutions",
    "schedule-before-save",
    "schedule",
    "head",
    "two-norms",
    "momentum",
)

Batch = tuple[torch.Tensor, torch.Tensor]


def make_model() -> nn.Sequential:
    """Return the network, which maps [batch, 1, 8, 8] to [batch, 4]."""
    torch.manual_seed(2)
    first = [nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(6, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(32, 4))


def make_data() -> TensorDataset:
    """Return 96 images of 4 kinds."""
    generator = torch.Generator().manual_seed(8)
    kinds = torch.randint(0, 4, (96,), generator=generator)
    images = torch.randn(96, 1, 8, 8, generator=generator)
    for number, kind in enumerate(kinds.tolist()):
        images[number, 0, 2 * kind : 2 * kind + 2] += 1.0
    return TensorDataset(images, kinds)


class Training:
    """The model, its optimizer, its schedule and its data."""

    def __init__(self, lose: str) -> None:
        """Begin at step 0."""
        self.lose = lose
        self.model = make_model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=7, gamma=0.5)
        self.generator = torch.Generator().manual_seed(21)
        self.loader = DataLoader(make_data(), batch_size=8, shuffle=True, generator=self.generator)
        self.step = self.position = 0
        self.epoch_began = self.generator.get_state()

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of one epoch that are still to be seen."""
        self.epoch_began = self.generator.get_state()
        seen, self.position = self.position, 0
        for number, batch in enumerate(self.loader):
            if number < seen:
                self.position += 1
                continue
            self.position += 1
            yield batch
        self.position = 0

    def advance(self, images: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        """Do one step and return its loss."""
        loss = nn.functional.cross_entropy(self.model(images), kinds)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss

    def save(self, out: Path) -> None:
        """Write both files."""
        weights = dict(self.model.named_parameters()) if self.lose == "buffers" else self.model.state_dict()
        publish(out / "weights.pt", {name: tensor.detach() for name, tensor in weights.items()})
        generator = self.generator.get_state() if self.lose == "epoch-start" else self.epoch_began
        state = {"step": self.step, "position": self.position, "loader": generator}
        schedule = self.schedule.state_dict()
        publish(out / "trainer.pt", {**state, "optimizer": self.optimizer.state_dict(), "schedule": schedule})
        say_saved(self.step)

    def restore(self, out: Path) -> None:
        """Go on from both files."""
        weights, found = read(out / "weights.pt"), read(out / "trainer.pt")
        self.restore_weights(weights)
        self.restore_optimizer(found["optimizer"])
        if self.lose != "schedule":
            self.schedule.load_state_dict(found["schedule"])
        self.step = found["step"]
        self.position = 0 if self.lose == "position" else found["position"]
        if self.lose == "one-batch":
            self.position += 1  # positions count from 0, so the next one is one further
        if self.lose != "loader-generator":
            self.generator.set_state(found["loader"])

    def restore_weights(self, weights: State) -> None:
        """Load the weights and the buffers."""
        if self.lose == "head":
            weights = {name: tensor for name, tensor in weights.items() if not name.startswith("9.")}
        elif self.lose == "two-norms":
            weights = {name: tensor for name, tensor in weights.items() if not name.startswith("5.running")}
        self.model.load_state_dict(weights, strict=self.lose not in {"buffers", "head", "two-norms"})

    def restore_optimizer(self, saved: State) -> None:
        """Load the momenta."""
        if self.lose == "momentum-of-convolutions":
            shapes = [parameter.ndim for parameter in self.model.parameters()]
            saved["state"] = {number: state for number, state in saved["state"].items() if shapes[number] == 4}
        elif self.lose == "momentum":
            saved["state"] = {}
        self.optimizer.load_state_dict(saved)


def main() -> None:
    """Train to the last step."""
    out, lose = options(__doc__ or "", *LOSSES)
    training = Training(lose)
    if (out / "trainer.pt").exists():
        training.restore(out)
    while training.step < STEPS:
        for images, kinds in training.batches():
            loss = training.advance(images, kinds)
            say_step(training.step, loss)
            is_due = training.step % EVERY == 0
            if is_due and lose == "schedule-before-save":
                training.save(out)
            training.schedule.step()
            if is_due and lose != "schedule-before-save":
                training.save(out)
            if training.step == STEPS:
                break
    publish(out / "final.pt", training.model.state_dict())


if __name__ == "__main__":
    main()

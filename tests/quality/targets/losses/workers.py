"""A loader with a worker process and a sampler that knows its place; Adam; one file.

The order of an epoch follows from its number. The sampler is asked ahead of the training, because the worker fetches
ahead, so the place that is saved is counted from the batches that came out. `--lose` lets it make one mistake, or two.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch
from saving import State, options, publish, read, say_saved, say_step
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

STEPS, EVERY, BATCH, ROWS = 26, 7, 6, 60
IN_EPOCH = ROWS // BATCH
LOSSES = (
    "prefetched",
    "other-order",
    "samples",
    "epoch",
    "rest-of-epoch",
    "optimizer-and-data",
    "one-back",
)


class Rows(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Rows that are made when they are asked for."""

    def __len__(self) -> int:
        """Return how many there are."""
        return ROWS

    def __getitem__(self, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return 8 numbers, and what they stand for."""
        x = torch.randn(8, generator=torch.Generator().manual_seed(1000 + row))
        return x, (x[0] + x[1] * x[2]).tanh()


class Places(Sampler[list[int]]):
    """Yields batches of rows from a place in an epoch on, and remembers how many it has handed out."""

    def __init__(self) -> None:
        """Begin with epoch 0."""
        self.salt = self.epoch = self.first_row = self.handed_out = 0

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches that are left of the epoch."""
        rows = list(range(ROWS))
        random.Random(1_000_000 * self.salt + self.epoch).shuffle(rows)
        self.handed_out = self.first_row // BATCH
        for first in range(self.first_row, ROWS, BATCH):
            self.handed_out += 1
            yield rows[first : first + BATCH]

    def __len__(self) -> int:
        """Return how many batches are left."""
        return (ROWS - self.first_row) // BATCH


class Training:
    """The model, its optimizer and its place in the data."""

    def __init__(self, lose: str) -> None:
        """Begin at step 0."""
        torch.manual_seed(70)
        self.lose = lose
        self.model = nn.Sequential(nn.Linear(8, 18), nn.Tanh(), nn.Linear(18, 18), nn.Tanh(), nn.Linear(18, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        self.places = Places()
        self.step = self.epoch = self.position = 0
        self.rng: torch.Tensor | None = None

    def run_epoch(self) -> Iterator[int]:
        """Train on what is left of an epoch; yield after each step."""
        self.places.epoch = self.epoch
        loader = DataLoader(Rows(), batch_sampler=self.places, num_workers=1, prefetch_factor=2)
        batches = iter(loader)
        if self.rng is not None:
            torch.set_rng_state(self.rng)  # to make an iterator draws a seed for the worker
            self.rng = None
        for x, y in batches:
            loss = (self.model(x).squeeze(1) - y).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1
            self.position += 1
            say_step(self.step, loss)
            yield self.step
        self.epoch += 1
        self.position = self.places.first_row = 0

    def state(self) -> State:
        """Return all of it."""
        position = self.places.handed_out if self.lose == "prefetched" else self.position
        place = {"step": self.step, "epoch": self.epoch, "position": position, "rng": torch.get_rng_state()}
        return {**place, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def restore(self, found: State) -> None:
        """Go on from a saved state."""
        self.step, self.epoch, self.position = found["step"], found["epoch"], found["position"]
        self.rng = found["rng"]
        self.model.load_state_dict(found["model"])
        if self.lose != "optimizer-and-data":
            self.optimizer.load_state_dict(found["optimizer"])
        self.find_place()

    def find_place(self) -> None:
        """Tell the sampler where to go on."""
        if self.lose == "rest-of-epoch":
            self.epoch, self.position = self.epoch + 1, 0
        elif self.lose == "epoch":
            self.epoch = 0
        elif self.lose == "one-back":
            self.position -= 1
        elif self.lose == "optimizer-and-data":
            self.position = 0
        elif self.lose == "other-order":
            self.places.salt = self.step
        self.places.first_row = self.position * BATCH
        if self.lose == "samples":
            self.places.first_row = self.position * (BATCH - 2)


def main() -> None:
    """Train to the last step."""
    out, lose = options(__doc__ or "", *LOSSES)
    training = Training(lose)
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists():
        training.restore(read(checkpoint))
    while training.step < STEPS:
        for step in training.run_epoch():
            if step % EVERY == 0:
                publish(checkpoint, training.state())
                say_saved(step)
            if step == STEPS:
                break
    publish(out / "final.pt", training.model.state_dict())


if __name__ == "__main__":
    main()

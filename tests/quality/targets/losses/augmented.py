"""Images that are mirrored and made noisy: `random` decides on the one, numpy draws the other, torch shuffles.

The loader has no generator of its own, so torch's draws the order of each epoch and, later, the dropout. SGD with
momentum and batch norm; one file. `--lose` lets it make one mistake, or two.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import torch
from saving import State, options, publish, read, say_saved, say_step
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS, EVERY, BATCH, IN_EPOCH = 32, 7, 9, 10
LOSSES = (
    "numpy",
    "random",
    "numpy-seed",
    "random-of-epoch",
    "torch-before-loader",
    "torch",
    "buffers-and-numpy",
    "scoped",
)


def make_data() -> TensorDataset:
    """Return 90 rows of 12 numbers, and what they stand for."""
    draw = torch.Generator().manual_seed(3)
    x = torch.randn(IN_EPOCH * BATCH, 12, generator=draw)
    return TensorDataset(x, (x[:, 3] - x[:, 4] * x[:, 5]).tanh())


def numpy_state() -> State:
    """Return numpy's generator in plain types."""
    _, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002 - what many trainings still draw from
    return {"keys": keys.tolist(), "position": position, "has_gauss": has_gauss, "gauss": gauss}


def set_numpy_state(state: State) -> None:
    """Put numpy's generator back."""
    keys = np.array(state["keys"], dtype=np.uint32)
    np.random.set_state(("MT19937", keys, state["position"], state["has_gauss"], state["gauss"]))  # noqa: NPY002


class Training:
    """The model, its optimizer, and its place in the epoch."""

    def __init__(self, lose: str) -> None:
        """Begin at step 0."""
        torch.manual_seed(50)
        np.random.seed(51)  # noqa: NPY002 - as above
        random.seed(52)
        self.lose = lose
        layers = [nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1)]
        self.model = nn.Sequential(*layers)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.8)
        self.loader = DataLoader(make_data(), batch_size=BATCH, shuffle=True)
        self.step = 0
        self.epoch_began = torch.get_rng_state()
        self.random_began = random.getstate()
        self.now: torch.Tensor | None = None

    def batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield what is left of an epoch: its order is drawn as it was, what was seen is passed over."""
        if self.now is not None and self.lose != "torch":
            torch.set_rng_state(self.now if self.lose == "torch-before-loader" else self.epoch_began)
        self.epoch_began, self.random_began = torch.get_rng_state(), random.getstate()
        batches = iter(self.loader)
        for _ in range(self.step % IN_EPOCH):
            next(batches)
        now, self.now = self.now, None
        if now is not None and self.lose not in {"torch", "torch-before-loader"}:
            self.put_back(now)
        yield from batches

    def put_back(self, now: torch.Tensor) -> None:
        """Put torch's generator to where it was when the state was saved."""
        if self.lose == "scoped":
            with torch.random.fork_rng():
                torch.set_rng_state(now)
            return
        torch.set_rng_state(now)

    def advance(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Do one step on a batch, changed a little, and return the loss."""
        if random.random() < 0.5:
            x = x.flip(1)
        noise = np.random.normal(0, 0.1, x.shape).astype(np.float32)  # noqa: NPY002 - as above
        loss = (self.model(x + torch.from_numpy(noise)).squeeze(1) - y).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss

    def state(self) -> State:
        """Return all of it, the four generators' states too."""
        generators = {"torch": torch.get_rng_state(), "epoch": self.epoch_began, "numpy": numpy_state()}
        generators["random"] = self.random_began if self.lose == "random-of-epoch" else random.getstate()
        saved = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return {"step": self.step, **saved, **generators}

    def restore(self, found: State) -> None:
        """Go on from a saved state."""
        self.step = found["step"]
        self.restore_model(found["model"])
        self.optimizer.load_state_dict(found["optimizer"])
        if self.lose != "random":
            random.setstate(found["random"])
        if self.lose == "numpy-seed":
            np.random.seed(found["numpy"]["keys"][0])  # noqa: NPY002 - the mistake
        elif self.lose not in {"numpy", "buffers-and-numpy"}:
            set_numpy_state(found["numpy"])
        if self.step % IN_EPOCH == 0:
            torch.set_rng_state(found["torch"])  # the next epoch's order is still to be drawn
        else:
            self.epoch_began, self.now = found["epoch"], found["torch"]

    def restore_model(self, saved: State) -> None:
        """Load the weights and the buffers."""
        if self.lose == "buffers-and-numpy":
            wanted = dict(self.model.named_parameters())
            saved = {name: tensor for name, tensor in saved.items() if name in wanted}
        self.model.load_state_dict(saved, strict=self.lose != "buffers-and-numpy")


def main() -> None:
    """Train to the last step."""
    out, lose = options(__doc__ or "", *LOSSES)
    training = Training(lose)
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists():
        training.restore(read(checkpoint))
    while training.step < STEPS:
        for x, y in training.batches():
            say_step(training.step + 1, training.advance(x, y))
            if training.step % EVERY == 0:
                publish(checkpoint, training.state())
                say_saved(training.step)
            if training.step == STEPS:
                break
    publish(out / "final.pt", training.model.state_dict())


if __name__ == "__main__":
    main()

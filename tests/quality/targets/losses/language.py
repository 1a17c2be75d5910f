"""A small recurrent model of text: an embedding, a GRU, dropout; windows drawn by a generator of the script's own.

AdamW, LambdaLR with a warmup, a weight decay that is raised on the way; one file. `--lose` lets it make one mistake,
or two.
"""

from __future__ import annotations

import torch
from saving import State, options, publish, read, say_saved, say_step
from torch import nn

STEPS, EVERY, BATCH, LENGTH, WARMUP = 34, 9, 6, 12, 8
TEXT = "the order of the batches, the state of the optimizer and the place in the schedule are all part of a run. " * 4
LOSSES = (
    "windows",
    "last-epoch",
    "schedule",
    "schedule-in-epochs",
    "by-shape",
    "count-in-epochs",
    "schedule-and-generator",
    "raised-decay",
    "betas",
)


class Model(nn.Module):
    """Predicts the next letter."""

    def __init__(self, letters: int) -> None:
        """Make the layers."""
        super().__init__()
        self.embedding = nn.Embedding(letters, 16)
        self.recurrent = nn.GRU(16, 16, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.left = nn.Linear(16, 16)
        self.gate = nn.Linear(16, 16)
        self.head = nn.Linear(16, letters)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        """Map [batch, length] to [batch, letters, length]."""
        hidden, _ = self.recurrent(self.embedding(letters))
        hidden = self.dropout(hidden)
        return self.head(self.left(hidden) * self.gate(hidden).sigmoid()).transpose(1, 2)


def rate(step: int) -> float:
    """Return the share of the full learning rate: a warmup, then a decline."""
    return (step + 1) / WARMUP if step < WARMUP else (WARMUP / (step + 1)) ** 0.5


class Training:
    """The model, its optimizer, its schedule and its windows."""

    def __init__(self, lose: str) -> None:
        """Begin at step 0."""
        torch.manual_seed(80)
        self.lose = lose
        alphabet = sorted(set(TEXT))
        self.text = torch.tensor([alphabet.index(letter) for letter in TEXT])
        self.model = Model(len(alphabet))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-3, betas=(0.9, 0.98), weight_decay=0.01)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate)
        self.windows = torch.Generator().manual_seed(81)
        self.step = 0

    def advance(self) -> torch.Tensor:
        """Do one step on windows that are drawn, and return the loss."""
        starts = torch.randint(0, len(self.text) - LENGTH - 1, (BATCH,), generator=self.windows).tolist()
        letters = torch.stack([self.text[start : start + LENGTH + 1] for start in starts])
        loss = nn.functional.cross_entropy(self.model(letters[:, :-1]), letters[:, 1:])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.step += 1
        if self.step == WARMUP:
            for group in self.optimizer.param_groups:
                group["weight_decay"] = 0.1  # the warmup is over
        return loss

    def names(self) -> list[str]:
        """Return the parameters' names in the order of the optimizer."""
        return [name for name, _ in self.model.named_parameters()]

    def state(self) -> State:
        """Return all of it, the optimizer's state by names."""
        optimizer = self.optimizer.state_dict()
        named = dict(zip(self.names(), optimizer["state"].values(), strict=True))
        generators = {"rng": torch.get_rng_state(), "windows": self.windows.get_state()}
        parts = {"model": self.model.state_dict(), "named": named, "param_groups": optimizer["param_groups"]}
        return {"step": self.step, **parts, "schedule": self.schedule.state_dict(), **generators}

    def restore(self, found: State) -> None:
        """Go on from a saved state."""
        self.step = found["step"]
        self.model.load_state_dict(found["model"])
        self.restore_optimizer(found["named"], found["param_groups"])
        self.restore_schedule(found["schedule"])
        if self.lose != "windows":
            self.windows.set_state(found["windows"])
        if self.lose != "schedule-and-generator":
            torch.set_rng_state(found["rng"])

    def restore_optimizer(self, named: dict[str, State], groups: list[State]) -> None:
        """Load the optimizer's state by names."""
        states = self.fitting(named) if self.lose == "by-shape" else [named[name] for name in self.names()]
        if self.lose == "count-in-epochs":
            for state in states:
                state["step"] = torch.tensor(float(self.step // EVERY))
        self.optimizer.load_state_dict({"state": dict(enumerate(states)), "param_groups": groups})
        for group in self.optimizer.param_groups:
            if self.lose == "raised-decay":
                group["weight_decay"] = self.optimizer.defaults["weight_decay"]
            if self.lose == "betas":
                group["betas"] = (0.9, 0.999)

    def fitting(self, named: dict[str, State]) -> list[State]:
        """Return for each parameter the first state that is left of those with its shape, whatever their names."""
        left, chosen = [named[name] for name in sorted(named)], []
        for parameter in self.model.parameters():
            fits = next(state for state in left if state["exp_avg"].shape == parameter.shape)
            left = [state for state in left if state is not fits]
            chosen.append(fits)
        return chosen

    def restore_schedule(self, saved: State) -> None:
        """Load the schedule, or make it anew for the step."""
        if self.lose == "last-epoch":
            self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate, last_epoch=self.step)
        elif self.lose in {"schedule", "schedule-and-generator"}:
            self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate)
        elif self.lose == "schedule-in-epochs":
            self.schedule.last_epoch = self.step // EVERY
        else:
            self.schedule.load_state_dict(saved)


def main() -> None:
    """Train to the last step."""
    out, lose = options(__doc__ or "", *LOSSES)
    training = Training(lose)
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists():
        training.restore(read(checkpoint))
    while training.step < STEPS:
        say_step(training.step + 1, training.advance())
        if training.step % EVERY == 0:
            publish(checkpoint, training.state())
            say_saved(training.step)
    publish(out / "final.pt", training.model.state_dict())


if __name__ == "__main__":
    main()

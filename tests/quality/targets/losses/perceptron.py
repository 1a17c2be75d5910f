"""A perceptron with dropout: AdamW with two groups, a learning rate and batches that follow from the step alone.

One file holds everything. `--lose` lets it make one mistake with the optimizer's state, the weights or the generator.
"""

from __future__ import annotations

import math

import torch
from saving import State, options, publish, read, say_saved, say_step
from torch import nn

STEPS, EVERY, BATCH = 30, 8, 16
LOSSES = (
    "optimizer",
    "second-group",
    "second-moment",
    "first-moment-bf16",
    "step-count",
    "weight-decay",
    "generator",
    "weights-bf16",
    "names",
    "small-tensors",
)


class Perceptron(nn.Module):
    """Two hidden layers with dropout behind each."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.embed = nn.Linear(16, 32)
        self.norm = nn.LayerNorm(32)
        self.hidden = nn.Linear(32, 32)
        self.out = nn.Linear(32, 1)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [batch, 16] to [batch]."""
        x = self.dropout(torch.relu(self.norm(self.embed(x))))
        return self.out(self.dropout(torch.relu(self.hidden(x)))).squeeze(1)


def learning_rate(step: int) -> float:
    """Return the rate of a step: a short warmup, then half a cosine."""
    return 3e-3 * min(1.0, (step + 1) / 5) * (0.55 + 0.45 * math.cos(math.pi * step / STEPS))


def group_parameters(model: nn.Module) -> list[State]:
    """Return the parameters in two groups: matrices decay, the others do not."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim == 1]
    return [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]


class Training:
    """The model, its optimizer and where they are."""

    def __init__(self, lose: str) -> None:
        """Begin at step 0."""
        torch.manual_seed(11)
        self.lose = lose
        self.model = Perceptron()
        self.optimizer = torch.optim.AdamW(group_parameters(self.model), lr=3e-3)
        self.step = 0

    def advance(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Do one step on a batch and return the loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step)
        loss = (self.model(x) - y).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss

    def names(self) -> dict[int, str]:
        """Return the name of each parameter by its number in the optimizer's state."""
        known = {parameter: name for name, parameter in self.model.named_parameters()}
        flat = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        return {number: known[parameter] for number, parameter in enumerate(flat)}

    def state(self) -> State:
        """Return what is saved."""
        weights = self.model.state_dict()
        if self.lose == "weights-bf16":
            weights = {name: tensor.to(torch.bfloat16) for name, tensor in weights.items()}
        optimizer = self.kept(self.optimizer.state_dict())
        return {"step": self.step, "model": weights, "optimizer": optimizer, "rng": torch.get_rng_state()}

    def kept(self, saved: State) -> State:
        """Return what is kept of the optimizer's state."""
        states: dict[int, State] = saved["state"]
        if self.lose == "second-group":
            states = {number: states[number] for number in saved["param_groups"][0]["params"]}
        elif self.lose == "first-moment-bf16":
            states = {n: {**state, "exp_avg": state["exp_avg"].to(torch.bfloat16)} for n, state in states.items()}
        elif self.lose == "second-moment":
            states = {n: {k: v for k, v in state.items() if k != "exp_avg_sq"} for n, state in states.items()}
        elif self.lose == "small-tensors":
            states = {n: state for n, state in states.items() if state["exp_avg"].numel() >= 64}
        elif self.lose == "names":
            names = self.names()
            named = {"model." + names[number]: state for number, state in states.items()}
            return {"named": named, "param_groups": saved["param_groups"]}
        return {"state": states, "param_groups": saved["param_groups"]}

    def restore(self, found: State) -> None:
        """Go on from what was saved."""
        self.step = found["step"]
        self.model.load_state_dict(found["model"])
        if self.lose != "optimizer":
            self.restore_optimizer(found["optimizer"])
        if self.lose != "generator":
            torch.set_rng_state(found["rng"])

    def restore_optimizer(self, saved: State) -> None:
        """Load the optimizer's state."""
        if self.lose == "names":
            plain = {name.lstrip("model."): state for name, state in saved["named"].items()}
            states = {number: plain[name] for number, name in self.names().items() if name in plain}
            saved = {"state": states, "param_groups": saved["param_groups"]}
        for state in saved["state"].values():
            state.setdefault("exp_avg_sq", torch.zeros_like(state["exp_avg"]))
            if self.lose == "step-count":
                state["step"] = torch.tensor(0.0)
        self.optimizer.load_state_dict(saved)
        if self.lose == "weight-decay":
            for group in self.optimizer.param_groups:
                group["weight_decay"] = self.optimizer.defaults["weight_decay"]


def main() -> None:
    """Train to the last step."""
    out, lose = options(__doc__ or "", *LOSSES)
    data = torch.Generator().manual_seed(5)
    x = torch.randn(320, 16, generator=data)
    y = (x[:, :4].sum(1) * x[:, 5]).tanh()
    training = Training(lose)
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists():
        training.restore(read(checkpoint))
    while training.step < STEPS:
        rows = slice(training.step * BATCH % len(x), training.step * BATCH % len(x) + BATCH)
        loss = training.advance(x[rows], y[rows])
        say_step(training.step, loss)
        if training.step % EVERY == 0:
            publish(checkpoint, training.state())
            say_saved(training.step)
    publish(out / "final.pt", training.model.state_dict())


if __name__ == "__main__":
    main()

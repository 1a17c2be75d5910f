"""A generator and a critic that learn against each other: RMSprop and Adam with amsgrad, two files, noise each step.

Each step is one of the critic and then one of the generator. `--lose` lets it make one mistake.
"""

from __future__ import annotations

from pathlib import Path

import torch
from saving import State, options, publish, read, say_saved, say_step
from torch import nn

STEPS, EVERY, BATCH = 28, 7, 12
LOSSES = (
    "generators-optimizer",
    "critics-optimizer",
    "largest-moments",
    "squares-fp16",
    "preview",
    "velocity",
    "older-critic-file",
)


class Side:
    """One of the two networks with its optimizer and its file."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Bind them."""
        self.model, self.optimizer = model, optimizer

    def state(self) -> State:
        """Return what is saved of it."""
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def update(self, loss: torch.Tensor) -> None:
        """Do one step of this side."""
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class Game:
    """Both sides."""

    def __init__(self, lose: str) -> None:
        """Begin at step 0."""
        torch.manual_seed(31)
        self.lose = lose
        painter = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 8))
        critic = nn.Sequential(nn.Linear(8, 24), nn.LeakyReLU(0.1), nn.Linear(24, 1))
        self.painter = Side(painter, torch.optim.RMSprop(painter.parameters(), lr=2e-3, momentum=0.5))
        self.critic = Side(critic, torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.99), amsgrad=True))
        self.step = 0

    def advance(self) -> torch.Tensor:
        """Do one step of each side on new noise and return the generator's loss."""
        real = torch.randn(BATCH, 8).cumsum(1)
        painted = self.painter.model(torch.randn(BATCH, 4))
        tell = nn.functional.softplus
        self.critic.update(tell(-self.critic.model(real)).mean() + tell(self.critic.model(painted.detach())).mean())
        loss = tell(-self.critic.model(self.painter.model(torch.randn(BATCH, 4)))).mean()
        self.painter.update(loss)
        self.step += 1
        return loss

    def save(self, out: Path) -> None:
        """Write a file for each side; the generator's has the step too."""
        critic, painter = self.critic.state(), self.painter.state()
        if self.lose == "squares-fp16":
            states: State = painter["optimizer"]["state"]
            painter["optimizer"]["state"] = {n: {**s, "square_avg": s["square_avg"].half()} for n, s in states.items()}
        if self.lose == "older-critic-file":
            critic = self.with_older_optimizer(out, critic)
        publish(out / "critic.pt", critic)
        publish(out / "painter.pt", {**painter, "step": self.step, "rng": torch.get_rng_state()})
        say_saved(self.step)

    def with_older_optimizer(self, out: Path, critic: State) -> State:
        """Return the critic's state with the optimizer's of the save before, as where its write lags behind by one."""
        waiting = out / "waiting.pt"
        older = read(waiting)["optimizer"] if waiting.exists() else critic["optimizer"]
        publish(waiting, {"optimizer": critic["optimizer"]})
        return {**critic, "optimizer": older}

    def restore(self, out: Path) -> None:
        """Go on from the two files."""
        critic, painter = read(out / "critic.pt"), read(out / "painter.pt")
        self.critic.model.load_state_dict(critic["model"])
        self.painter.model.load_state_dict(painter["model"])
        for state in critic["optimizer"]["state"].values():
            if self.lose == "largest-moments":
                state["max_exp_avg_sq"] = torch.zeros_like(state["exp_avg_sq"])
        for state in painter["optimizer"]["state"].values():
            if self.lose == "velocity":
                state["momentum_buffer"] = torch.zeros_like(state["square_avg"])
        if self.lose != "critics-optimizer":
            self.critic.optimizer.load_state_dict(critic["optimizer"])
        if self.lose != "generators-optimizer":
            self.painter.optimizer.load_state_dict(painter["optimizer"])
        self.step = painter["step"]
        torch.set_rng_state(painter["rng"])
        if self.lose == "preview":
            self.look()

    @torch.no_grad()
    def look(self) -> None:
        """Paint a few samples, to see what was loaded."""
        self.painter.model.eval()
        self.painter.model(torch.randn(3, 4))
        self.painter.model.train()


def main() -> None:
    """Play to the last step."""
    out, lose = options(__doc__ or "", *LOSSES)
    game = Game(lose)
    if (out / "painter.pt").exists():
        game.restore(out)
    while game.step < STEPS:
        say_step(game.step + 1, game.advance())
        if game.step % EVERY == 0:
            game.save(out)
    publish(out / "final.pt", {**game.painter.model.state_dict(), "critic": game.critic.model[0].weight.detach()})


if __name__ == "__main__":
    main()

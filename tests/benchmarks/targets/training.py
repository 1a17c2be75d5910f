"""A training as small or as large as asked: saves through a temporary name, resumes exactly, and times itself.

It imports nothing but torch, so that every tool can start it. Two kinds of run use it: the tiny one, whose start costs
more than its steps, and a larger one that saves in a small part of its time.
"""

# ruff: noqa: T201 - a trainer prints

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import torch
from torch import nn


class Training:
    """A small network that learns to reverse its input; all that the next step depends on is saved."""

    def __init__(self, width: int, batch: int) -> None:
        """Start from step 0, the same in every run; a `width` of 32 gives 4,192 parameters."""
        torch.manual_seed(7)
        self.step = 0
        self.shape = (batch, width)
        self.model = nn.Sequential(nn.Linear(width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.batches = torch.Generator().manual_seed(11)

    def advance(self) -> float:
        """Do one step and return its loss."""
        batch = torch.randn(self.shape, generator=self.batches)
        loss = (self.model(batch) - batch.flip(1)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def save(self, path: Path) -> None:
        """Put a checkpoint in place under a temporary name first."""
        temporary = path.with_name(path.name + ".tmp")
        state = {
            "step": self.step,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "batches": self.batches.get_state(),
        }
        torch.save(state, temporary)
        temporary.replace(path)

    def restore(self, path: Path) -> None:
        """Go on from a checkpoint."""
        state = torch.load(path, weights_only=True)
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.batches.set_state(state["batches"])


def since_process_start_s() -> float:
    """Return the seconds since this process was started, to a clock tick (10 ms)."""
    started_ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_ticks / os.sysconf("SC_CLK_TCK")


def train(training: Training, out: Path, *, steps: int, every: int) -> tuple[float, float]:
    """Train to the last step, save every `every`-th one, leave the final weights; return the time spent saving.

    Seconds by the clock, and of the processor.
    """
    saving_s = busy_s = 0.0
    while training.step < steps:
        loss = training.advance()
        print(f"step {training.step} loss {loss:.4f}", flush=True)
        if training.step % every == 0:
            started, busy = time.perf_counter(), time.process_time()
            training.save(out / "ckpt.pt")
            print(f"saved step {training.step}", flush=True)
            saving_s += time.perf_counter() - started
            busy_s += time.process_time() - busy
    torch.save(training.model.state_dict(), out / "final.pt.tmp")
    (out / "final.pt.tmp").replace(out / "final.pt")
    return saving_s, busy_s


def main() -> None:
    """Read the options, resume if there is something to resume from, train, and say how long it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    torch.set_num_threads(1)  # at this size more threads only add noise
    options.out.mkdir(parents=True, exist_ok=True)
    training = Training(options.width, options.batch)
    checkpoint = options.out / "ckpt.pt"
    if checkpoint.exists():
        training.restore(checkpoint)
    print(f"resumed from step {training.step}", flush=True)
    started, busy = time.perf_counter(), time.process_time()
    saving_s, saving_busy_s = train(training, options.out, steps=options.steps, every=options.every)
    training_s, busy_s = time.perf_counter() - started, time.process_time() - busy
    print(f"processor: steps {busy_s - saving_busy_s:.4f}", flush=True)
    print(f"times: whole {since_process_start_s():.4f} training {training_s:.4f} saving {saving_s:.4f}", flush=True)


if __name__ == "__main__":
    main()

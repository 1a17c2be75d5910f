"""The training: begin or resume, update, save, finish. Read from the bottom up: `run` is the whole story."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor, nn

from trainer import checkpoint, data
from trainer.checkpoint import RESUME, WEIGHTS, WEIGHTS_FORMAT, DamagedError
from trainer.model import next_byte_loss
from trainer.options import Options, TrainerError
from trainer.state import TrainState, fresh_state, restore, resume_payload, weights_payload

LOWEST_LR_SHARE = 0.1
Say: TypeAlias = Callable[[str], None]


def get_lr(step: int, options: Options) -> float:
    """Return the learning rate of the update after `step` others: linear warm-up, then a cosine down to a tenth."""
    if step < options.warmup:
        return options.lr * (step + 1) / options.warmup
    done = (step - options.warmup) / max(1, options.steps - options.warmup)  # from 0 to 1
    return options.lr * (LOWEST_LR_SHARE + (1 - LOWEST_LR_SHARE) * 0.5 * (1 + math.cos(math.pi * done)))


def update(state: TrainState, text: Tensor) -> tuple[float, float]:
    """Do one update on batches from `text` (N,) and return its mean loss in nats and its learning rate."""
    options, lr, total = state.options, get_lr(state.step, state.options), 0.0
    for group in state.optimizer.param_groups:
        group["lr"] = lr
    for _ in range(options.accumulation):
        tokens = data.cut(text, state.order.draw(), options.sequence).to(options.device)  # (B, T + 1)
        with torch.autocast(options.device, torch.bfloat16, enabled=options.dtype == "bfloat16"):
            loss = next_byte_loss(state.model, tokens) / options.accumulation
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    nn.utils.clip_grad_norm_(state.model.parameters(), options.clip)
    state.optimizer.step()
    state.optimizer.zero_grad(set_to_none=True)
    state.step += 1
    return total, lr


def evaluate(state: TrainState, held_out: Tensor) -> float:
    """Return the loss on fixed batches of the held-out text (N,); draws from no generator, so it changes nothing."""
    state.model.eval()
    with torch.no_grad():
        tokens = data.evaluation_batch(held_out, state.options.sequence).to(state.options.device)  # (16, T + 1)
        loss = next_byte_loss(state.model, tokens).item()
    state.model.train()
    return loss


def save(state: TrainState, say: Say) -> None:
    """Publish both files, and say so only when both are there."""
    out, way = state.options.out, state.options.save
    checkpoint.publish(resume_payload(state), out / RESUME, way)
    checkpoint.publish(weights_payload(state), out / WEIGHTS, way)
    say(f"saved step {state.step}")


def begin(state: TrainState, say: Say) -> None:
    """Resume from the newest whole checkpoint in the folder, or start at 0 where no run ever was."""
    out = state.options.out
    checkpoint.remove_stale(out)
    found = checkpoint.newest_whole(out)
    if found is None:
        say("starting from step 0")
        return
    name, payload = found
    restore(state, payload)
    say(f"resumed from {name} at step {state.step}")
    if name != RESUME:
        checkpoint.reinstate(out / RESUME)
    refresh_weights(state, say)


def refresh_weights(state: TrainState, say: Say) -> None:
    """Write weights.pt again where the killed life left it damaged, missing, or one save behind resume.pt."""
    path, reason = state.options.out / WEIGHTS, "missing"
    if path.exists():
        try:
            present = checkpoint.read(path, WEIGHTS_FORMAT)
            if present["run_id"] == state.run_id and present["step"] >= state.step:
                return
            reason = "older than the resume file"
        except DamagedError as error:
            reason = f"damaged ({error})"
            path.unlink()  # or it would become the previous one, in the place of a whole one
    checkpoint.publish(weights_payload(state), path, state.options.save)
    say(f"wrote {WEIGHTS} again: it was {reason}")


def train(state: TrainState, text: Tensor, say: Say) -> None:
    """Update until the last step, and save every `save_every` steps and at the last."""
    options = state.options
    while state.step < options.steps:
        loss, lr = update(state, text)
        say(f"step {state.step} loss {loss:.4f} lr {lr:.6f}")
        if options.save_every and (state.step % options.save_every == 0 or state.step == options.steps):
            save(state, say)
    if not options.save_every:
        checkpoint.publish(weights_payload(state), options.out / WEIGHTS, options.save)
        say(f"wrote {WEIGHTS}")


def run(options: Options) -> None:
    """Train from wherever the folder stands to the last step; raise TrainerError where that cannot be done."""
    prepare(options)
    text = data.load_text(options)
    training, held_out = data.split(text)
    state = fresh_state(options, text, len(training))
    with progress(options) as say:
        say(describe(state))
        begin(state, say)
        train(state, training, say)
        say(f"final loss {evaluate(state, held_out):.4f}")
        say(f"done: {state.step} steps")


def prepare(options: Options) -> None:
    """Make the folder and set torch to repeat itself exactly."""
    if options.device == "cuda":
        if not torch.cuda.is_available():
            raise TrainerError("--device cuda was asked for, but torch sees no such device: use --device cpu")
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS refuses to be deterministic
    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(True)
    if not options.out.exists():
        options.out.mkdir(parents=True)
        checkpoint.sync_folder(options.out.parent)


def describe(state: TrainState) -> str:
    """Return one line that names the configuration."""
    chosen, size = state.options, sum(parameter.numel() for parameter in state.model.parameters())
    parts = (
        f"trainer: run {state.run_id}, {size} parameters, {chosen.steps} steps, saves every {chosen.save_every}",
        f"{chosen.order} order, {chosen.accumulation} x {chosen.batch_size} x {chosen.sequence} bytes an update",
        f"seed {chosen.seed}, {chosen.device}, {chosen.dtype}, threads {chosen.threads}, save {chosen.save}",
        *(f"forget {part}" for part in sorted(chosen.forget)),
    )
    return ", ".join(parts)


@contextmanager
def progress(options: Options) -> Iterator[Say]:
    """Give what prints a line at once; a terminal also sees a bar on standard error, moved by the step lines."""
    if not sys.stderr.isatty():
        yield print_whole
        return
    from tqdm import tqdm  # type: ignore[import-untyped]

    with tqdm(total=options.steps, unit="step", file=sys.stderr) as bar:

        def say(line: str) -> None:
            """Print above the bar."""
            with bar.external_write_mode(file=sys.stdout):
                print_whole(line)
            if line.startswith("step "):
                bar.n = int(line.split()[1])
                bar.refresh()

        yield say


def print_whole(line: str) -> None:
    """Print in a single write: `print` makes two where Python is unbuffered, and a kill could fall between them."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

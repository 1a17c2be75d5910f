"""The text, and the two orders in which batches are cut from it. Both go on exactly from what `capture` returned."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor

from trainer.options import Options, Order, TrainerError

HELD_OUT_SHARE = 0.1
EVALUATION_SEQUENCES = 16


def load_text(options: Options) -> bytes:
    """Return `--data`, or the documentation topics that come with Python; raise TrainerError where it is too short."""
    if options.data is not None:
        text = options.data.read_bytes()
    else:
        from pydoc_data.topics import topics

        text = "\n".join(topics[name] for name in sorted(topics)).encode()
    needed = 2 * (options.sequence + 1) * max(options.batch_size, round(1 / HELD_OUT_SHARE))
    if len(text) < needed:
        raise TrainerError(f"the text has {len(text)} bytes; these sizes need at least {needed}: take a longer --data")
    return text


def digest(text: bytes) -> str:
    """Return what identifies the text in a checkpoint."""
    return hashlib.sha256(text).hexdigest()[:16]


def split(text: bytes) -> tuple[Tensor, Tensor]:
    """Return the part to train on and the part held out at the end, each (N,) of uint8."""
    everything = torch.frombuffer(bytearray(text), dtype=torch.uint8)  # (N,)
    border = len(text) - int(len(text) * HELD_OUT_SHARE)
    return everything[:border], everything[border:]


def cut(text: Tensor, positions: Tensor, sequence: int) -> Tensor:
    """Return tokens (B, T + 1) of `text` (N,) from each of `positions` (B,); the last byte is only a target."""
    return text[positions[:, None] + torch.arange(sequence + 1)].long()  # (B, T + 1)


def evaluation_batch(held_out: Tensor, sequence: int) -> Tensor:
    """Return tokens (16, T + 1) evenly spread over `held_out` (N,): always the same, no generator is asked."""
    last = len(held_out) - sequence - 1
    return cut(held_out, torch.arange(EVALUATION_SEQUENCES) * last // (EVALUATION_SEQUENCES - 1), sequence)


class RandomOrder:
    """Each batch is drawn anew from a generator of its own, whose state is saved."""

    def __init__(self, size: int, options: Options) -> None:
        """Draw from a text of `size` bytes."""
        self.highest, self.batch_size = size - options.sequence, options.batch_size
        self.generator = torch.Generator().manual_seed(options.seed)

    def draw(self) -> Tensor:
        """Return random positions (B,)."""
        return torch.randint(self.highest, (self.batch_size,), generator=self.generator)  # (B,)

    def capture(self) -> dict[str, Any]:
        """Return the generator's state."""
        return {"generator": self.generator.get_state()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the generator's state."""
        self.generator.set_state(saved["generator"])


class EpochOrder:
    """A permutation of all sequences, made again from seed + epoch: two numbers are all its state.

    `skipped_again` is 0 unless `--forget epoch-skip` sets it: then later epochs begin that many batches late.
    """

    def __init__(self, size: int, options: Options) -> None:
        """Permute a text of `size` bytes; an epoch ends early after `epoch_batches`, unless that is 0."""
        self.sequence, self.batch_size, self.seed = options.sequence, options.batch_size, options.seed
        self.num_sequences = (size - 1) // options.sequence
        whole = self.num_sequences // self.batch_size
        self.num_batches = min(options.epoch_batches, whole) if options.epoch_batches else whole
        self.epoch = self.position = self.skipped_again = 0
        self.permutation = self._permute()

    def _permute(self) -> Tensor:
        """Return the order of sequences (num_sequences,) of this epoch."""
        return torch.randperm(self.num_sequences, generator=torch.Generator().manual_seed(self.seed + self.epoch))

    def draw(self) -> Tensor:
        """Return the next positions (B,), of the next epoch when this one is used up."""
        if self.position >= self.num_batches:
            self.epoch, self.position = self.epoch + 1, self.skipped_again
            self.permutation = self._permute()
        first = self.position * self.batch_size
        self.position += 1
        return self.permutation[first : first + self.batch_size] * self.sequence  # (B,)

    def capture(self) -> dict[str, Any]:
        """Return the epoch and how many of its batches were used."""
        return {"epoch": self.epoch, "position": self.position}

    def restore(self, saved: dict[str, Any]) -> None:
        """Make that epoch's permutation again and skip what was used."""
        self.epoch, self.position = saved["epoch"], saved["position"]
        self.permutation = self._permute()


def make_order(size: int, options: Options) -> RandomOrder | EpochOrder:
    """Return the order that the options ask for, over a text of `size` bytes."""
    return EpochOrder(size, options) if options.order is Order.EPOCH else RandomOrder(size, options)

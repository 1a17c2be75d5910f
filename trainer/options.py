"""What can be asked of the trainer: the command line, as one frozen record. Imports no torch, so `--help` is fast."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class TrainerError(Exception):
    """Training cannot begin or go on; the message is a whole sentence for the user, the exit status is 1."""


class Order(StrEnum):
    """How batches are drawn from the text."""

    RANDOM = "random"
    EPOCH = "epoch"


class SaveWay(StrEnum):
    """How a checkpoint is written: `durable` is right, each other one makes a mistake (`minimind` makes three)."""

    DURABLE = "durable"
    NO_FSYNC = "no-fsync"
    NO_DIR_FSYNC = "no-dir-fsync"
    IN_PLACE = "in-place"
    HALF = "half"
    MINIMIND = "minimind"


SYNCED = {SaveWay.DURABLE, SaveWay.HALF, SaveWay.NO_DIR_FSYNC}  # the file is made durable before it is renamed
FOLDER_SYNCED = {SaveWay.DURABLE, SaveWay.HALF}  # the folder is made durable, and so the name, before going on
KEEPING_PREVIOUS = {*SYNCED, SaveWay.NO_FSYNC}  # the file before the newest stays
HALF_RESUME = {SaveWay.HALF, SaveWay.MINIMIND}  # the resume file's weights are rounded, so it cannot resume exactly


class Forget(StrEnum):
    """A part of the state that a resumed run does without.

    `epoch-skip` forgets that only the epoch that was interrupted begins late: later ones skip as many batches too.
    """

    OPTIMIZER = "optimizer"
    BATCH_ORDER = "batch-order"
    RNG = "rng"
    STEP = "step"
    EPOCH_SKIP = "epoch-skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All choices of one run; lengths are in bytes of text, which are the model's tokens."""

    out: Path
    data: Path | None = None
    steps: int = 60
    save_every: int = 10
    seed: int = 0
    order: Order = Order.RANDOM
    epoch_batches: int = 17
    batch_size: int = 4
    sequence: int = 32
    accumulation: int = 1
    dropout: float = 0.1
    lr: float = 5e-3
    warmup: int = 6
    weight_decay: float = 0.1
    clip: float = 1.0
    dim: int = 112
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    dtype: str = "float32"
    device: str = "cpu"
    threads: int = 1
    save: SaveWay = SaveWay.DURABLE
    forget: frozenset[Forget] = frozenset()
    named_run_id: str = ""

    def must_match(self, text_digest: str) -> dict[str, int | float | str]:
        """Return the options, by their command-line names, without which a resumed run would end with other bits."""
        names = "steps seed order batch_size sequence accumulation dropout lr warmup weight_decay clip"
        names += " dim layers heads kv_heads dtype device threads"
        chosen: dict[str, int | float | str] = {"data": text_digest}
        for name in names.split():
            value = getattr(self, name)
            chosen[name.replace("_", "-")] = str(value) if isinstance(value, StrEnum) else value
        if self.order is Order.EPOCH:
            chosen["epoch-batches"] = self.epoch_batches
        return chosen

    def run_id(self, text_digest: str) -> str:
        """Return the run's id: the one given, else a digest of the options, the same in each run of them."""
        if self.named_run_id:
            return self.named_run_id
        return hashlib.sha256(json.dumps(self.must_match(text_digest), sort_keys=True).encode()).hexdigest()[:12]


def parse(argv: Sequence[str] | None = None) -> Options:
    """Return the options of a command line; a wrong one ends the program with status 2 and a sentence."""
    parser = _parser()
    chosen = vars(parser.parse_args(argv))
    forget = {Forget(name) for name in chosen.pop("forget")}
    if chosen.pop("preset") == "minimind":
        chosen["save"] = chosen["save"] or SaveWay.MINIMIND
        chosen["order"] = chosen["order"] or Order.EPOCH
        forget.add(Forget.RNG)
    chosen["save"] = SaveWay(chosen["save"] or SaveWay.DURABLE)
    chosen["order"] = Order(chosen["order"] or Order.RANDOM)
    options = Options(forget=frozenset(forget), **chosen)
    complaint = _complaint(options)
    if complaint:
        parser.error(complaint)
    return options


def _complaint(options: Options) -> str:
    """Return what is wrong with the options taken together, or nothing."""
    for lowest, names in _LOWEST.items():
        for name in names.split():
            if getattr(options, name) < lowest:
                return f"--{name.replace('_', '-')} must be at least {lowest}"
    rules = {
        "--lr and --clip must be above 0": options.lr > 0 and options.clip > 0,
        "--dropout must be at least 0 and below 1": 0 <= options.dropout < 1,
        "--dim must be a multiple of twice --heads": options.dim % (2 * options.heads) == 0,
        "--heads must be a multiple of --kv-heads": options.heads % options.kv_heads == 0,
        "--forget epoch-skip needs --order epoch": Forget.EPOCH_SKIP not in options.forget
        or options.order is Order.EPOCH,
        "--forget rng needs --dropout above 0": Forget.RNG not in options.forget or options.dropout > 0,
    }
    return next((sentence for sentence, is_kept in rules.items() if not is_kept), "")


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; `Options` holds the defaults."""
    parser = argparse.ArgumentParser(
        prog="trainer",
        description="Train a small language model on real text. The same command again resumes, bit for bit.",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of resume.pt and weights.pt")
    parser.add_argument("--data", type=Path, metavar="FILE", help="text to train on, instead of Python's own topics")
    for name, meaning in _NUMBERS.items():
        default = Options.__dataclass_fields__[name].default
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(default), default=default, help=f"{meaning} [{default}]"
        )
    parser.add_argument("--order", choices=[*Order], help="draw positions at random, or permute each epoch [random]")
    parser.add_argument(
        "--dtype", choices=["float32", "bfloat16"], default="float32", help="precision of computing [float32]"
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where to compute [cpu]")
    parser.add_argument("--run-id", dest="named_run_id", default="", metavar="ID", help="a name; else from the options")
    wrong = parser.add_argument_group("wrong ways, for teaching")
    wrong.add_argument("--save", choices=[*SaveWay], help="how to write checkpoints; only durable is right [durable]")
    wrong.add_argument("--forget", choices=[*Forget], action="append", default=[], help="a part of the state to lose")
    wrong.add_argument("--preset", choices=["minimind"], help="minimind: --save minimind --order epoch --forget rng")
    return parser


# What each numeric option means; type and default are those of the field in `Options`.
_NUMBERS = {
    "steps": "updates in the whole run",
    "save_every": "steps between saves; 0 only writes weights.pt at the end",
    "seed": "of weights, data order and dropout",
    "epoch_batches": "batches in an epoch of --order epoch; 0 takes the whole text",
    "batch_size": "sequences in a batch",
    "sequence": "bytes in a sequence",
    "accumulation": "batches in one update",
    "dropout": "share of activations set to 0",
    "lr": "highest learning rate",
    "warmup": "steps until the highest learning rate",
    "weight_decay": "of matrices only",
    "clip": "largest norm of the gradient",
    "dim": "width of the model",
    "layers": "decoder blocks",
    "heads": "attention heads",
    "kv_heads": "heads of keys and values, shared by groups of query heads",
    "threads": "of torch",
}
_LOWEST = {
    1: "steps batch_size sequence accumulation dim layers heads kv_heads threads",
    0: "save_every seed epoch_batches warmup weight_decay",
}

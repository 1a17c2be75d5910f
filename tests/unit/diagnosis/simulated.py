"""A toy training that makes the probe's records: real arithmetic on a few numbers, real generators, one dict a state.

What is kept of it is a copy; what a planted loss takes away is in `losses`.
"""

from __future__ import annotations

import copy
import hashlib
import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from chaos.model import StepRecord, TensorFacts

SHAPES = {"embed": 4, "block.norm": 2, "block.weight": 4, "head": 4}
SAMPLES, BATCH = 24, 2
EPOCH = SAMPLES // BATCH


def digest(value: object) -> str:
    """Return a digest of anything that prints itself."""
    return hashlib.blake2b(repr(value).encode(), digest_size=8).hexdigest()


def single(value: float) -> float:
    """Round to 32 bits."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def half(value: float) -> float:
    """Round to float16."""
    return float(struct.unpack("<e", struct.pack("<e", value))[0])


def brain(value: float) -> float:
    """Round to bfloat16, to the nearest, by trying both neighbours."""
    low = int.from_bytes(struct.pack("<f", value), "little") >> 16 << 16
    near = [float(struct.unpack("<f", bits.to_bytes(4, "little"))[0]) for bits in (low, low + 0x10000)]
    best = min(abs(one - value) for one in near)
    tied = [(bits, one) for bits, one in zip((low, low + 0x10000), near, strict=True) if abs(one - value) == best]
    return min(tied, key=lambda item: (item[0] >> 16) & 1)[1]


@dataclass(frozen=True, kw_only=True)
class Ways:
    """How the toy trains.

    `order`: `epoch` (a permutation from the epoch's number), `loader` (one from the loader's generator), `drawn` (each
    batch from torch's generator, no samples shown). `adam`: with state. `schedule`: `cosine`, `cycle` (moves betas
    too) or `constant`.
    """

    order: str = "epoch"
    accumulation: int = 1
    has_adam: bool = True
    schedule: str = "cosine"
    has_dropout: bool = True
    has_buffers: bool = True
    shows_samples: bool = True
    total: int = 40
    seed: int = 0


@dataclass(kw_only=True)
class Toy:
    """A training's whole state."""

    ways: Ways
    optimizer: str = "AdamW"
    rank: int = 0
    weights: dict[str, list[float]] = field(default_factory=dict)
    moments: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    count: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=lambda: {"weight_decay": 0.01, "betas": (0.9, 0.99)})
    buffers: dict[str, Any] = field(default_factory=dict)
    schedule_step: float = 0
    gradients: dict[str, list[float]] = field(default_factory=dict)
    micro: int = 0
    batch: int = 0  # batches read in this epoch
    epoch: int = 0
    order: list[int] = field(default_factory=list)
    rngs: dict[str, random.Random] = field(default_factory=dict)
    gradient_scale: float = 1.0

    def __post_init__(self) -> None:
        """Begin at step 0."""
        init = random.Random(self.ways.seed)
        self.weights = {name: [single(init.uniform(-1, 1)) for _ in range(size)] for name, size in SHAPES.items()}
        self.rngs = {name: random.Random(f"{name}{self.ways.seed}") for name in ("torch", "numpy", "random", "loader")}
        if self.ways.has_buffers:
            self.buffers = {"norm.running_mean": [0.0], "norm.num_batches_tracked": 0}
        self.gradients = {name: [0.0] * size for name, size in SHAPES.items()}
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Draw the order of an epoch."""
        self.order = list(range(SAMPLES))
        drawn = self.rngs["loader"] if self.ways.order == "loader" else random.Random(self.epoch)
        drawn.shuffle(self.order)

    def read(self) -> tuple[int, ...]:
        """Return the samples of the next batch."""
        if self.ways.order == "drawn":
            return tuple(self.rngs["torch"].randrange(10**6) for _ in range(BATCH))
        if self.batch == EPOCH:
            self.epoch, self.batch = self.epoch + 1, 0
            self.begin_epoch()
        ids = tuple(self.order[self.batch * BATCH : (self.batch + 1) * BATCH])
        self.batch += 1
        return ids

    def forward_backward(self) -> tuple[int, ...]:
        """Read one batch and add its gradients."""
        ids = self.read()
        noise = self.rngs["torch"].random() if self.ways.has_dropout else 1.0
        self.rngs["numpy"].random()
        self.rngs["random"].random()
        signal = math.sin(sum(ids) + noise)
        if self.buffers:
            mean = single(0.9 * self.buffers["norm.running_mean"][0] + 0.1 * signal * self.weights["embed"][0])
            self.buffers["norm.running_mean"] = [mean]
            self.buffers["norm.num_batches_tracked"] += 1
            signal += mean
        for name, values in self.weights.items():
            for at, value in enumerate(values):
                add = self.gradient_scale * (math.sin(signal * (at + 1) + value) + value) / self.ways.accumulation
                self.gradients[name][at] = single(self.gradients[name][at] + add)
        self.micro += 1
        return ids

    @property
    def lr(self) -> float:
        """The learning rate of the coming update."""
        done = self.schedule_step / self.ways.total
        return 0.01 if self.ways.schedule == "constant" else 0.01 * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))

    def group(self) -> dict[str, Any]:
        """Return the values of the optimizer's only group."""
        moved = {"betas": (0.8 + 0.1 * self.schedule_step / self.ways.total, 0.99)}
        return {"lr": self.lr, **self.settings, **(moved if self.ways.schedule == "cycle" else {})}

    def update(self) -> None:
        """Change the weights, and forget the gradients."""
        for name, values in self.weights.items():
            if self.ways.has_adam:
                state = self.moments.setdefault(name, {key: [0.0] * len(values) for key in ("exp_avg", "exp_avg_sq")})
                self.count[name] = self.count.get(name, 0) + 1
            for at, value in enumerate(values):
                gradient = self.gradients[name][at]
                if self.ways.has_adam:
                    state["exp_avg"][at] = single(0.9 * state["exp_avg"][at] + 0.1 * gradient)
                    state["exp_avg_sq"][at] = single(0.99 * state["exp_avg_sq"][at] + 0.01 * gradient * gradient)
                    gradient = state["exp_avg"][at] / (math.sqrt(state["exp_avg_sq"][at]) + 1e-8)
                values[at] = single(value - self.lr * (gradient + self.settings["weight_decay"] * value))
        self.gradients = {name: [0.0] * size for name, size in SHAPES.items()}
        self.schedule_step += 1
        self.micro = 0

    def step(self, ordinal: int, *, is_detailed: bool, is_digested: bool = True) -> StepRecord:
        """Do one step, from wherever its accumulation stands, and return its record."""
        ids = []
        while self.micro < self.ways.accumulation:
            ids.append(self.forward_backward())
        record = self.record(ordinal, ids, is_detailed=is_detailed, is_digested=is_digested)
        self.update()
        return record

    def record(
        self, ordinal: int, ids: Sequence[tuple[int, ...]], *, is_detailed: bool, is_digested: bool
    ) -> StepRecord:
        """Return what the probe would see of this moment."""
        components = {f"rng.{name}": digest(rng.getstate()) for name, rng in self.rngs.items() if self.shows(name)}
        components |= {f"group.{name}": digest(value) for name, value in self.group().items()}
        batches = tuple(digest(one) for one in ids)
        components["data"] = digest(batches)
        state = self.state()
        if is_digested:
            components |= {"weights": digest(self.weights), "gradients": digest(self.gradients)}
            components |= {name: digest(tensors) for name, tensors in state.items()}
            components |= {"buffers": digest(self.buffers)} if self.buffers else {}
        values = {"group.lr": (self.lr,), "group.weight_decay": (float(self.settings["weight_decay"]),)}
        if self.count:
            values["state.step"] = (float(min(self.count.values())), float(max(self.count.values())))
        shown = ids if self.ways.shows_samples and self.ways.order != "drawn" else [() for _ in ids]
        return StepRecord(
            ordinal=ordinal,
            rank=self.rank,
            optimizer=self.optimizer,
            components=components,
            batches=batches,
            samples=tuple(shown),
            values=values,
            details=self.details(state) if is_detailed else {},
            sketch=tuple(value for values in self.weights.values() for value in values[:2]),
        )

    def shows(self, generator: str) -> bool:
        """Tell whether the probe sees a generator."""
        return generator != "loader" or self.ways.order == "loader"

    def state(self) -> dict[str, dict[str, Any]]:
        """Return the optimizer's state by component and parameter."""
        keys = sorted({key for state in self.moments.values() for key in state})
        found: dict[str, dict[str, Any]] = {
            f"state.{key}": {name: state[key] for name, state in self.moments.items() if key in state} for key in keys
        }
        return found | ({"state.step": {name: [float(one)] for name, one in self.count.items()}} if self.count else {})

    def details(self, state: dict[str, dict[str, Any]]) -> dict[str, dict[str, TensorFacts]]:
        """Return facts of each tensor."""
        found = {name: {key: facts(value) for key, value in tensors.items()} for name, tensors in state.items()}
        found["weights"] = {name: facts(values) for name, values in self.weights.items()}
        if self.buffers:
            found["buffers"] = {
                name: facts(value, "float32") if isinstance(value, list) else facts([float(value)], "int64")
                for name, value in self.buffers.items()
            }
        return found


def facts(values: Sequence[float], dtype: str = "float32") -> TensorFacts:
    """Return the facts of one tensor."""
    plain = digest(list(values))
    rounded = {name: digest([to(value) for value in values]) for name, to in (("float16", half), ("bfloat16", brain))}
    return TensorFacts(
        digest=plain,
        dtype=dtype,
        is_zero=not any(values),
        value=values[0] if len(values) == 1 else None,
        **{name: other if other != plain and dtype == "float32" else "" for name, other in rounded.items()},
    )


@dataclass(kw_only=True)
class Run:
    """A life: its records, what it saved after which step, and its weights after none, one, … of its steps."""

    records: tuple[StepRecord, ...]
    saves: dict[int, Toy]
    trail: list[dict[str, list[float]]]


def run(toy: Toy, first: int, last: int, save_every: int = 10, *, digested_every: int = 1) -> Run:
    """Train from after step `first` to step `last`, and save; each save has details in the step behind it."""
    records, saves, trail = [], {first: copy.deepcopy(toy)}, [copy.deepcopy(toy.weights)]
    for number in range(first, last):
        is_detailed = number == first or number % save_every == 0
        is_digested = is_detailed or number % digested_every == 0
        records.append(toy.step(number - first + 1, is_detailed=is_detailed, is_digested=is_digested))
        trail.append(copy.deepcopy(toy.weights))
        if (number + 1) % save_every == 0:
            saves[number + 1] = copy.deepcopy(toy)
    return Run(records=tuple(records), saves=saves, trail=trail)


Lose = Callable[[Toy, Toy, Run], None]
"""Changes what a life resumes with; it is given what is fresh, and the reference too."""


def resumed(reference: Run, ways: Ways, at: int, *losses: Lose, last: int = 0, save_every: int = 10) -> Run:
    """Return a life that resumes from the save after a step, without what `losses` take away."""
    toy, fresh = copy.deepcopy(reference.saves[at]), Toy(ways=ways)
    for lose in losses:
        lose(toy, fresh, reference)
    return run(toy, at, last or ways.total, save_every)


def in_json(records: Sequence[StepRecord]) -> tuple[StepRecord, ...]:
    """Return records as they come back from a journal."""
    return msgspec.json.decode(msgspec.json.encode(records), type=tuple[StepRecord, ...])

"""What the probe saw of each optimizer step: digests of everything that training depends on."""

from __future__ import annotations

import msgspec

from chaos.model.record import Record

# Names of components in a record. Those of the optimizer's state are `state.` and the key (`state.exp_avg`), those of
# its groups' values `group.` and the name (`group.lr`).
WEIGHTS = "weights"
GRADIENTS = "gradients"
BUFFERS = "buffers"
CARRIED = "carried"
DATA = "data"
RNG_TORCH = "rng.torch"
RNG_CUDA = "rng.cuda"
RNG_NUMPY = "rng.numpy"
RNG_RANDOM = "rng.random"
RNG_LOADER = "rng.loader"
STATE_PREFIX = "state."
GROUP_PREFIX = "group."


class TensorFacts(Record, kw_only=True):
    """One tensor of a component, in a record with details.

    `digest` is over its numbers as 32-bit floats where it has fewer bits (so that a tensor kept in half precision can
    be found again), over its bytes otherwise. `head` is that of the first 4,096 numbers (empty: there are no more),
    `float16` and `bfloat16` are the digests of these after rounding to that type and back (empty where that changes
    nothing or makes no sense). `value` is the number of a tensor with one element.
    """

    digest: str
    head: str = ""
    dtype: str
    is_zero: bool = False
    float16: str = ""
    bfloat16: str = ""
    value: float | None = None

    @property
    def start(self) -> str:
        """Return the digest that another tensor's `float16` and `bfloat16` are compared with."""
        return self.head or self.digest


class StepRecord(Record, kw_only=True):
    """What one optimizer was about to step with, taken right before it changed the parameters.

    `ordinal` counts the steps of this optimizer in this life, from 1, whether digested or not; `rank` is the process's
    rank (0 where there is one), `optimizer` its name: the class, and `#2` and so on for a further one of that class.
    `components` maps the name of each component to the digest of all of it (hexadecimal); of a digested record, a
    component that is not there had nothing in it: `state.exp_avg` is missing where the optimizer had no such state.
    `gradients` are those that the step would use. Generators are as they were at that moment: after the forward passes.
    `carried` (only at a life's first step and after a save) are gradients that were there before the step's first
    batch: those of an accumulation half done, or stale ones that are set to zero later, which say nothing. `saves`
    counts the save calls (and renames) that returned since the process's last step.

    `batches` are digests of what was given to the outermost modules in training since the optimizer's last step, one a
    call, in order (taken at every step, like the generators); `samples` are, for each of these calls, the positions of
    its samples in the data set, where a `DataLoader` showed them (an empty tuple where it did not). `data` in
    `components` is over all of `batches`.

    `values` are numbers that can be read: `group.lr` (one a group), `state.step` (smallest and largest).
    `details` (only at a life's first step, and at each step right after a save) maps a component (`weights`, `buffers`,
    `state.…`) to its tensors by name. `sketch` are some weights' values at fixed places, the same in every life.
    """

    ordinal: int
    rank: int = 0
    optimizer: str = ""
    components: dict[str, str] = msgspec.field(default_factory=dict)
    saves: int = 0
    batches: tuple[str, ...] = ()
    samples: tuple[tuple[int, ...], ...] = ()
    values: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    details: dict[str, dict[str, TensorFacts]] = msgspec.field(default_factory=dict)
    sketch: tuple[float, ...] = ()

    @property
    def is_left_out(self) -> bool:
        """Tell whether the budget left everything out: then only the ordinal is known."""
        return not self.components

    @property
    def is_digested(self) -> bool:
        """Tell whether weights, gradients, buffers and optimizer state were digested: a budget may leave steps out."""
        return WEIGHTS in self.components


class StepRun(Record, kw_only=True):
    """That `count` records of a life, from position `first`, are the reference's from position `reference` on."""

    first: int
    reference: int
    count: int

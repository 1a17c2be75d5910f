"""Which state a resumed life had lost: the words of a diagnosis."""

from __future__ import annotations

from enum import StrEnum

from chaos.model.record import Record


class Component(StrEnum):
    """A part of a training's state, as an engineer would name it."""

    WEIGHTS = "weights"
    BUFFERS = "buffers"
    OPTIMIZER = "optimizer state"
    STEP_COUNTER = "optimizer's step counter"
    SCHEDULER = "learning rate schedule"
    SETTINGS = "optimizer's settings"
    RNG_TORCH = "torch generator"
    RNG_CUDA = "CUDA generator"
    RNG_NUMPY = "numpy generator"
    RNG_RANDOM = "random generator"
    RNG_LOADER = "loader's generator"
    DATA = "data"
    ACCUMULATION = "accumulated gradients"
    GRADIENTS = "gradients"


class Manner(StrEnum):
    """How a component is not what it was in the reference."""

    MISSING = "missing"
    PARTLY_MISSING = "partly missing"
    LOWER_PRECISION = "of lower precision"
    OTHER_STEP = "of another step"
    AVERAGED = "an average"
    AHEAD = "ahead"
    BEHIND = "behind"
    REBUILT = "rebuilt"
    REPEATED = "repeated"
    SKIPPED = "skipped"
    REORDERED = "in another order"
    DIFFERENT = "different"


class LostState(Record, kw_only=True):
    """One component that is not the reference's, how, and at which step of the reference that shows first.

    `detail` is one sentence with the facts: which parameters, how many of how many, which batches. `rank` and
    `optimizer` tell which one where there are several (0 and empty else).
    """

    component: Component
    manner: Manner
    step: int
    detail: str
    rank: int = 0
    optimizer: str = ""


class Diagnosis(Record, kw_only=True):
    """What became of the state when a life resumed.

    `life` is its number in the lineage (0: not given). `resumed_at` is the number of steps of the reference that the
    state it went on with is of (None: it could not be told), `first_difference` the first step (from 1, the
    reference's) in which anything differs (None: nothing does). `lost` are the components that are not explained by
    another one; `equal` the names of those that are the same there. `doubts` are sentences on what could not be seen.
    """

    life: int = 0
    resumed_at: int | None
    first_difference: int | None
    lost: tuple[LostState, ...] = ()
    equal: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

"""Which part of a training's state a leaf belongs to, by its name alone.

Names are made of words (`optimizer.pt/state.3.exp_avg`), and the first word that says something decides: so `scheduler`
inside of an optimizer's state is the optimizer's, and a network called `generator` inside of a model is the model's.
In a folder the words inside of a file come before those of the file's name: `model.pt` may hold all of a training's
state. Whatever no word tells is a weight if it is a tensor of floats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

WEIGHTS: Final = "weights"
AVERAGE: Final = "averaged weights"
BUFFERS: Final = "buffers"
OPTIMIZER: Final = "optimizer state"
OPTIMIZER_STEP: Final = "optimizer's step counter"
SETTINGS: Final = "optimizer's settings"
SCHEDULE: Final = "learning rate schedule"
SCALER: Final = "gradient scaler"
GENERATORS: Final = "generators"
ORDER: Final = "data order"
STEP: Final = "step counter"
CHECKSUM: Final = "checksum"
TENSORS: Final = "other tensors"
VALUES: Final = "other values"
# In this order they are shown; the optimizer's state by key comes where its name stands.
IN_ORDER: Final = (
    WEIGHTS, AVERAGE, BUFFERS, OPTIMIZER, OPTIMIZER_STEP, SETTINGS, SCHEDULE, SCALER, GENERATORS, ORDER, STEP, TENSORS,
    VALUES, CHECKSUM,
)  # fmt: skip

_SEPARATORS: Final = re.compile(r"[/.]")
_PARTS_OF_WORD: Final = re.compile(r"[_\-]")
_NUMBER: Final = re.compile(r"'?-?\d+'?|\[.*\]|#\d+")
_WEIGHT_WORDS: Final = frozenset({
    "model", "models", "module", "net", "network", "weights", "weight", "params", "parameters", "pytorch", "adapter",
})  # fmt: skip
_OPTIMIZER_WORDS: Final = frozenset({"optimizer", "optimizers", "optim", "opt", "adam", "adamw", "sgd"})
_SCHEDULE_WORDS: Final = frozenset({"scheduler", "schedulers", "sched", "schedule"})
_GENERATOR_WORDS: Final = frozenset({"rng", "rngs", "generator", "generators", "seedsequence"})
_ORDER_WORDS: Final = frozenset({"order", "sampler", "samplers", "dataloader", "dataloaders", "loader", "dl"})
_SCALER_WORDS: Final = frozenset({"scaler"})
_AVERAGE_WORDS: Final = frozenset({"ema", "shadow_params"})
_RANDOM_STATE: Final = "random_state"
_BUFFER_WORDS: Final = frozenset({"running_mean", "running_var", "num_batches_tracked"})
_STATE_KEYS: Final = frozenset({
    "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "grad_avg", "acc_delta", "exp_inf",
})  # fmt: skip
# What savers of their own call the same, which says so only beside the word `optimizer`.
_SHORT_KEYS: Final = frozenset({"m", "v", "mu", "nu", "momentum", "velocity", "variance", "trace"})
_STEP_WORDS: Final = frozenset({
    "step", "step_count", "global_step", "current_step", "last_step", "epoch", "current_epoch", "iteration", "iter",
    "iter_num", "updates", "num_updates",
})  # fmt: skip
# What a run was asked for or told of, whatever words stand behind them.
_LOG_WORDS: Final = frozenset({"log_history", "history", "options", "config", "args", "hyper_parameters"})
# How the path begins of a leaf of an optimizer that a file holds alone: the file's name has to tell the rest.
_OPTIMIZER_HEADS: Final = _STATE_KEYS | _SHORT_KEYS | {"state"}
_PARAMETER_WORDS: Final = frozenset({"weight", "bias"})
_CHECKSUM_WORDS: Final = frozenset({"checksum", "checksums", "sha256", "md5", "digest", "crc32", "hash"})


def component_of(name: str, *, is_tensor: bool, is_float: bool, elements: int = 1, member: str = "") -> str:
    """Return the component of a leaf: one of the names above, `optimizer state: KEY` for what an optimizer keeps.

    `elements` counts those of a tensor: a counter has one. `member` is the file of a folder that the leaf is in, with
    which its name begins.
    """
    told = _told(_words(name), is_tensor=is_tensor, is_float=is_float, elements=elements)
    if member:
        own = _words(name.removeprefix(member))
        inside = _told(own, is_tensor=is_tensor, is_float=is_float, elements=elements)
        by_file = _told(_words(member), is_tensor=is_tensor, is_float=is_float, elements=elements)
        if inside is not None and not _is_by_file(own, inside, by_file):
            return inside
    if told is not None:
        return told
    return VALUES if not is_tensor else WEIGHTS if is_float else TENSORS


def _words(name: str) -> list[str]:
    """Return the words of a name, without its numbers."""
    return [word.lower() for word in _SEPARATORS.split(name) if word and not _NUMBER.fullmatch(word)]


def _told(words: Sequence[str], *, is_tensor: bool, is_float: bool, elements: int) -> str | None:
    """Return the component that the words speak of, None where none of them says anything."""
    for position, word in enumerate(words):
        found = _by_word(word, words[position + 1 :], is_tensor=is_tensor, is_float=is_float)
        if found is not None:
            return found
    if words and words[-1] in _STEP_WORDS and elements == 1:
        return STEP
    return CHECKSUM if words and not is_tensor and words[-1] in _CHECKSUM_WORDS else None


def _is_by_file(own: Sequence[str], inside: str, by_file: str | None) -> bool:
    """Tell whether the name of the file says more of a leaf than its path `own` inside of it, which says `inside`."""
    if by_file is None:
        return False
    if is_of_optimizer(by_file):
        return own[0] in _OPTIMIZER_HEADS
    if by_file == AVERAGE:
        return inside in {WEIGHTS, BUFFERS}
    if by_file == WEIGHTS:
        # A layer may be called `opt_head`: what an optimizer keeps of a parameter is below a key of the optimizer's.
        return inside in {OPTIMIZER, SCHEDULE} and own[-1] in _PARAMETER_WORDS
    # A sampler counts its own epochs and has its own generator, a schedule counts its own steps.
    return (by_file, inside) in {(ORDER, STEP), (ORDER, GENERATORS), (SCHEDULE, STEP)}


def _by_word(word: str, behind: Sequence[str], *, is_tensor: bool, is_float: bool) -> str | None:
    """Return the component that one word of the name speaks of, None where it says nothing."""
    parts = {word, *_PARTS_OF_WORD.split(word)}
    if word in _LOG_WORDS and not is_tensor:
        return VALUES
    if word in _STATE_KEYS:
        return f"{OPTIMIZER}: {word}"
    if word == "param_groups":
        return SETTINGS
    if parts & _OPTIMIZER_WORDS:
        return _of_optimizer(behind, is_tensor=is_tensor)
    if is_tensor and behind:
        parts |= {behind[-1]} & _BUFFER_WORDS
    if word.startswith(_RANDOM_STATE):
        parts |= _GENERATOR_WORDS
    rules = (
        (SCHEDULE, _SCHEDULE_WORDS, True),
        (SCALER, _SCALER_WORDS, not is_float),
        (GENERATORS, _GENERATOR_WORDS, not is_float),
        (ORDER, _ORDER_WORDS, not is_float),
        (AVERAGE, _AVERAGE_WORDS, is_tensor),
        (BUFFERS, _BUFFER_WORDS, is_tensor),
        (WEIGHTS, _WEIGHT_WORDS, is_tensor),
    )
    return next((component for component, words, applies in rules if applies and parts & words), None)


def _of_optimizer(behind: Sequence[str], *, is_tensor: bool) -> str:
    """Return the component of a leaf in an optimizer's state, from the words behind the optimizer's."""
    key = next((word for word in reversed(behind) if word in _STATE_KEYS | _SHORT_KEYS), "")
    if "param_groups" in behind:
        return SETTINGS
    if behind and behind[-1] in _STEP_WORDS:
        return OPTIMIZER_STEP
    if not key and is_tensor and "state" in behind[:-1]:
        key = behind[-1]
    if key:
        return f"{OPTIMIZER}: {key}"
    return OPTIMIZER if is_tensor or "state" in behind or not behind else SETTINGS


def rank_of(component: str) -> tuple[int, str]:
    """Return by what components are sorted."""
    return IN_ORDER.index(component.partition(":")[0]), component


def key_of(component: str) -> str:
    """Return the optimizer's key that a component is of, empty where it is none."""
    return component.partition(": ")[2]


def is_of_optimizer(component: str) -> bool:
    """Tell whether it is any part of an optimizer's state."""
    return component.startswith("optimizer")

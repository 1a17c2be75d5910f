"""What an optimizer is about to step with: its parameters, gradients, state by key, and the values of its groups."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeGuard

import torch

from .tensors import facts, feed, feed_any, has_elements, hexadecimal, new_hash, on_cpu

_NOT_VALUES = {"params", "param_names"}
_SKETCHED_TENSORS = 8
_SKETCHED_ELEMENTS = 4
_MOST_DETAILED = 20_000  # tensors in one record

Named = list[tuple[str, torch.Tensor]]


class Names:
    """A name for each optimizer, the same in every life: its class, and its place among those of that class."""

    def __init__(self) -> None:
        """Know none."""
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._counts: dict[str, int] = {}

    def name(self, optimizer: Any) -> str:  # noqa: ANN401 - torch's own class
        """Return an optimizer's name; the first time, give it one."""
        known = self._names.get(optimizer)
        if known is not None:
            return known
        kind = type(optimizer).__name__
        self._counts[kind] = self._counts.get(kind, 0) + 1
        name = kind if self._counts[kind] == 1 else f"{kind}#{self._counts[kind]}"
        self._names[optimizer] = name
        return name


def parameters_of(optimizer: Any, names: dict[int, str]) -> Named:  # noqa: ANN401 - torch's own class
    """Return an optimizer's parameters in its own order, each with its name in the model, where that is known."""
    found = []
    for group_number, group in enumerate(optimizer.param_groups):
        own = dict(enumerate(group.get("param_names") or ()))
        for number, parameter in enumerate(group["params"]):
            known = names.get(id(parameter), f"{group_number}.{number}")
            found.append((str(own.get(number, known)), parameter))
    return found


def components(optimizer: Any, parameters: Named) -> dict[str, str]:  # noqa: ANN401 - torch's own class
    """Return the digests of weights, gradients and state."""
    found = {
        "weights": _digest(parameter for _, parameter in parameters),
        "gradients": _digest(parameter.grad for _, parameter in parameters),
    }
    hashers: dict[str, Any] = {}
    for number, (_, parameter) in enumerate(parameters):
        for key, value in _state_of(optimizer, parameter):
            hasher = hashers.setdefault(f"state.{key}", new_hash())
            hasher.update(number.to_bytes(4, "little"))
            feed_any(hasher, value)
    return found | {key: hexadecimal(hasher) for key, hasher in hashers.items()}


def group_values(optimizer: Any) -> tuple[dict[str, str], dict[str, list[float]]]:  # noqa: ANN401 - torch's own class
    """Return the digest of each group value over all groups, and the numbers among them."""
    values: dict[str, list[object]] = {}
    for group in optimizer.param_groups:
        for key, value in group.items():
            if key not in _NOT_VALUES:
                several = value if isinstance(value, list | tuple) else (value,)
                values.setdefault(f"group.{key}", []).extend(map(_plain, several))
    numbers = {key: [float(item) for item in items if _is_number(item)] for key, items in values.items()}
    return {key: _digest_of_text(repr(items)) for key, items in values.items()}, {
        key: items for key, items in numbers.items() if items
    }


@lru_cache(maxsize=1024)
def _digest_of_text(text: str) -> str:
    """Return the digest of a text; most settings never change."""
    hasher = new_hash()
    hasher.update(text.encode("utf-8", "backslashreplace"))
    return hexadecimal(hasher)


def _is_number(value: object) -> TypeGuard[float]:
    """Tell whether a value is a number that JSON can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


def step_counters(optimizer: Any, parameters: Named) -> list[float]:  # noqa: ANN401 - torch's own class
    """Return the smallest and the largest step counter in an optimizer's state (none: an empty list)."""
    states = (state for _, parameter in parameters for state in _state_of(optimizer, parameter))
    counts = [_plain(value) for key, value in states if key == "step"]
    numbers = [float(count) for count in counts if isinstance(count, int | float)]
    return [min(numbers), max(numbers)] if numbers else []


def details(optimizer: Any, parameters: Named) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - torch's own class
    """Return facts of each tensor of weights and state."""
    found: dict[str, dict[str, Any]] = {"weights": {}}
    left = _MOST_DETAILED
    for name, parameter in parameters:
        tensors = [("weights", parameter)]
        tensors += ((f"state.{key}", value) for key, value in _state_of(optimizer, parameter))
        for key, value in tensors:
            if left > 0 and isinstance(value, torch.Tensor):
                found.setdefault(key, {})[name] = facts(value)
                left -= 1
    return found


def sketch(parameters: Named) -> list[float]:
    """Return some weights' values at fixed places: of at most 8 tensors, 4 elements each."""
    step = max(1, len(parameters) // _SKETCHED_TENSORS)
    found: list[float] = []
    for _, parameter in parameters[::step][:_SKETCHED_TENSORS]:
        number = parameter.numel()
        if parameter.is_floating_point() and number and parameter.device.type == "cpu" and has_elements(parameter):
            plain = on_cpu(parameter)
            places = dict.fromkeys(part * (number - 1) // _SKETCHED_ELEMENTS for part in range(_SKETCHED_ELEMENTS))
            if plain.dtype is torch.float32:
                at = plain.data_ptr()
                found += (ctypes.c_float.from_address(at + 4 * place).value for place in places)
            else:
                flat = plain.detach().reshape(-1)
                found += (float(flat[place]) for place in places)
    return [float(f"{value:.9g}") for value in found if _is_number(value)]  # as many digits as 32 bits hold


def _state_of(optimizer: Any, parameter: torch.Tensor) -> Iterable[tuple[str, Any]]:  # noqa: ANN401 - torch's own class
    """Return the state of one parameter; asking for it must not make it, as indexing would."""
    state = optimizer.state
    return [(str(key), value) for key, value in state[parameter].items()] if parameter in state else []


def _digest(tensors: Iterator[torch.Tensor | None]) -> str:
    """Return one digest over tensors, of which some may not be there."""
    hasher = new_hash()
    for tensor in tensors:
        if tensor is None:
            hasher.update(b"none")
        else:
            feed(hasher, tensor)
    return hexadecimal(hasher)


def _plain(value: object) -> object:
    """Return the number in a tensor with one element, anything else as it is."""
    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value

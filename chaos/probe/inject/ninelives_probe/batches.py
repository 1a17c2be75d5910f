"""The batches: what is given to the outermost modules in training, as digests, and the modules themselves.

Loss functions and other modules without parameters get no batch; neither is a tensor one that was computed from the
parameters (it has a history).
"""

from __future__ import annotations

import dataclasses
import time
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from .loaders import Samples
from .tensors import digest_of, facts, has_elements, hexadecimal, new_hash

_MOST_DEEP = 8
_MOST_BATCHES = 4096  # of one step; a training without an optimizer of torch has no other bound


class Batches:
    """What the outermost modules were given since the last step."""

    def __init__(self, samples: Samples) -> None:
        """Ask `samples` where a batch came from."""
        self._samples = samples
        self._digests: list[str] = []
        self._ids: list[tuple[int, ...]] = []
        self._modules: dict[int, weakref.ref[torch.nn.Module]] = {}
        self._spent_s = 0.0
        self._is_fresh = True
        self._carried_digest = ""
        self._carried_facts: dict[str, Any] = {}

    def see(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Take the inputs of an outermost call."""
        if not module.training or not torch.is_grad_enabled() or next(module.parameters(), None) is None:
            return
        if getattr(module, "_is_replica", False):  # of DataParallel: in threads, whose order is no order
            return
        if _is_rehearsal():
            return
        began_s = time.thread_time()
        known = self._modules.get(id(module))
        if known is None or known() is not module:
            self._modules.pop(id(module), None)  # of one that is gone: this one comes last
            self._modules[id(module)] = weakref.ref(module)
        tensors = list(data_in((args, kwargs)))
        if tensors and len(self._digests) < _MOST_BATCHES:
            self._take(module, tensors)
        self._spent_s += time.thread_time() - began_s

    def _take(self, module: torch.nn.Module, tensors: list[torch.Tensor]) -> None:
        """Take the tensors of one batch."""
        if self._is_fresh:
            self._is_fresh = False
            self._note_carried(module)
        hasher = new_hash()
        ids: tuple[int, ...] = ()
        for tensor in tensors:
            digest = digest_of((("", tensor),))
            hasher.update(digest.encode())
            ids = ids or self._samples.of(digest)
        self._digests.append(hexadecimal(hasher))
        self._ids.append(ids)

    def begin_anew(self) -> None:
        """Look, at the next batch, for gradients that were there before: those of an accumulation half done."""
        self._is_fresh = True

    def _note_carried(self, module: torch.nn.Module) -> None:
        """Take the gradients that are there before the first batch since a start or a save."""
        gradients = [(name, parameter.grad) for name, parameter in module.named_parameters()]
        there = [(name, gradient) for name, gradient in gradients if gradient is not None]
        self._carried_digest = digest_of(there) if there else ""
        self._carried_facts = {_clean(name, 0): facts(gradient) for name, gradient in there}

    def take_carried(self) -> tuple[str, dict[str, Any]]:
        """Return the digest of gradients that were there before this step's first batch, and facts of each (once)."""
        found = self._carried_digest, self._carried_facts
        self._carried_digest, self._carried_facts = "", {}
        return found

    def take(self) -> tuple[list[str], list[tuple[int, ...]], float]:
        """Return the batches since the last time, the ids of their samples, and the seconds that seeing them cost."""
        found = self._digests, self._ids, self._spent_s
        self._digests, self._ids, self._spent_s = [], [], 0.0
        return found

    def modules(self) -> list[torch.nn.Module]:
        """Return the outermost modules that are still there, in the order in which they were first called."""
        alive = {key: (reference, reference()) for key, reference in self._modules.items()}
        self._modules = {key: reference for key, (reference, module) in alive.items() if module is not None}
        return [module for _, module in alive.values() if module is not None]


def _is_rehearsal() -> bool:
    """Tell whether a call is only traced, or transformed: then its tensors are not data, and a look would be traced."""
    is_dispatched = torch._C._len_torch_dispatch_stack() > 0  # noqa: SLF001 - there is no other way to ask
    is_transformed = torch._C._functorch.peek_interpreter_stack() is not None  # noqa: SLF001 - the same
    is_traced = torch._C._get_tracing_state() is not None  # noqa: SLF001 - the same
    return is_dispatched or is_transformed or is_traced


def data_in(value: object, depth: int = 0) -> Iterator[torch.Tensor]:
    """Yield the tensors in a structure that are data: computed from nothing that is trained."""
    if isinstance(value, torch.Tensor):
        if not value.requires_grad and has_elements(value):
            yield value
    elif depth >= _MOST_DEEP:
        return
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from data_in(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from data_in(item, depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from data_in(getattr(value, field.name, None), depth + 1)


def buffers_of(modules: list[torch.nn.Module]) -> dict[str, torch.Tensor]:
    """Return the buffers of modules by name, each once."""
    found: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for number, module in enumerate(modules):
        for name, buffer in module.named_buffers():
            if id(buffer) not in seen:
                seen.add(id(buffer))
                found[_clean(name, number)] = buffer
    return found


def names_of(modules: list[torch.nn.Module]) -> dict[int, str]:
    """Return the names of modules' parameters by identity."""
    found: dict[int, str] = {}
    for number, module in enumerate(modules):
        for name, parameter in module.named_parameters():
            found.setdefault(id(parameter), _clean(name, number))
    return found


def _clean(name: str, number: int) -> str:
    """Return a name without what wrappers add to it; that of a further module is marked."""
    plain = name.replace("_orig_mod.", "").removeprefix("module.")
    return f"{plain}#{number + 1}" if number else plain

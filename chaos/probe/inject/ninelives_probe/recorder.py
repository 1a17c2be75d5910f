"""One record of each optimizer step: see `StepRecord` of `chaos.model`, which is what the lines are read as."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import weakref
from typing import Any

import torch

from . import generators, optimizers
from .batches import Batches, buffers_of, names_of
from .budget import DEFAULT_PERCENT, Budget
from .loaders import Samples
from .reporter import Reporter
from .tensors import digest_of, facts, new_hash

_DIGITS = 32


class Recorder:
    """Makes a record before each step, and reports it, with the tick, after it."""

    def __init__(self, reporter: Reporter) -> None:
        """Report through `reporter`."""
        self._reporter = reporter
        self._lock = threading.RLock()
        os.register_at_fork(after_in_child=self.be_forked)
        self.begin()

    def begin(self) -> None:
        """Begin a life: nothing has been seen yet."""
        self._budget = Budget(_percent())
        self.samples = Samples()
        self.batches = Batches(self.samples)
        self._names = optimizers.Names()
        self._ordinals: dict[str, int] = {}
        self._num_saves = 0
        self._is_detailed: dict[str, bool] = {}
        self._pending: weakref.WeakKeyDictionary[Any, bytes] = weakref.WeakKeyDictionary()

    def note_optimizer(self, optimizer: Any) -> None:  # noqa: ANN401 - torch's own class
        """Take an optimizer that is being made, which gives it its name."""
        self._names.name(optimizer)

    def note_save(self) -> None:
        """Take that a save call has returned: the next step of each optimizer is digested, with details."""
        # Without the lock: another thread may hold it where this process is forked.
        self._num_saves += 1
        self._is_detailed = {}
        self.batches.begin_anew()

    def note_rename(self) -> None:
        """Take that something was put in its place: by a saver of another kind, or, in small numbers, by anybody."""
        if self._budget.can_force():
            self.note_save()
        else:
            self._num_saves += 1

    def be_forked(self) -> None:
        """Begin anew in a child of this process, in which no other thread is there to give the lock back."""
        self._lock = threading.RLock()

    def before_step(self, optimizer: Any) -> None:  # noqa: ANN401 - torch's own class
        """Make the record of a step that is about to be done, as far as the budget goes."""
        with self._lock:
            name = self._names.name(optimizer)
            self._ordinals[name] = self._ordinals.get(name, 0) + 1
            batches, samples, seen_s = self.batches.take()
            if self._budget.is_off or _is_capturing():
                return
            is_forced = not self._is_detailed.get(name, False)
            self._is_detailed[name] = True
            self._budget.begin_step(is_forced=is_forced)
            if self._budget.allows_light():
                seen = (batches, samples, seen_s)
                self._pending[optimizer] = self._measured(optimizer, name, seen, is_forced=is_forced)
            else:
                self._pending[optimizer] = self._line("-", self._whose(name))

    def _measured(
        self,
        optimizer: Any,  # noqa: ANN401 - torch's own class
        name: str,
        seen: tuple[list[str], list[tuple[int, ...]], float],
        *,
        is_forced: bool,
    ) -> bytes:
        """Return the line of a step, and charge the budget with what its parts cost."""
        batches, samples, seen_s = seen
        began_s = time.thread_time()
        record = self._light_record(optimizer, name, batches, samples)
        light_s, full_s = time.thread_time() - began_s, None
        if self._budget.allows_full():
            self._add_state(record, optimizer)
            full_s = time.thread_time() - began_s - light_s
        light_s += seen_s
        if is_forced:
            self._add_details(record, optimizer)
        written_s = time.thread_time()
        line = self._line(_overall(record) if "weights" in record["components"] else "-", record)
        ended_s = time.thread_time()
        light_s += 0.0 if is_forced else ended_s - written_s
        self._budget.charge(light_s, full_s, ended_s - began_s, is_forced=is_forced)
        return line

    def after_step(self, optimizer: Any) -> None:  # noqa: ANN401 - torch's own class
        """Report the step as done."""
        self._reporter.report(self._pending.pop(optimizer, b"tick\n"))

    @staticmethod
    def _line(digest: str, record: dict[str, Any]) -> bytes:
        """Return what is reported of a step."""
        return f"tick {digest} {json.dumps(record, separators=(',', ':'), allow_nan=False)}\n".encode()

    def _whose(self, name: str) -> dict[str, Any]:
        """Return which step of which optimizer a record is of."""
        return {"ordinal": self._ordinals[name], "rank": _rank(), "optimizer": name}

    def _light_record(
        self,
        optimizer: Any,  # noqa: ANN401 - torch's own class
        name: str,
        batches: list[str],
        samples: list[tuple[int, ...]],
    ) -> dict[str, Any]:
        """Return the record of a step with data, generators and settings: what costs little, whatever the model."""
        components, values = optimizers.group_values(optimizer)
        components |= generators.digests(self.samples.generators())
        if batches:
            components["data"] = digest_of(enumerate_named(batches))
        carried, facts_of_carried = self.batches.take_carried()
        if carried:
            components["carried"] = carried
        num_saves, self._num_saves = self._num_saves, 0
        return self._whose(name) | {
            "saves": num_saves,
            "components": components,
            "details": {"carried": facts_of_carried} if carried else {},
            "values": values,
            "batches": batches,
            "samples": samples,
            "sketch": optimizers.sketch(optimizers.parameters_of(optimizer, {})),
        }

    def _add_state(self, record: dict[str, Any], optimizer: Any) -> None:  # noqa: ANN401 - torch's own class
        """Add the digests of weights, gradients, buffers and the optimizer's state to a record."""
        parameters = optimizers.parameters_of(optimizer, {})
        record["components"] |= optimizers.components(optimizer, parameters)
        if buffers := buffers_of(self.batches.modules()):
            record["components"]["buffers"] = digest_of(buffers.items())
        if counters := optimizers.step_counters(optimizer, parameters):
            record["values"]["state.step"] = counters

    def _add_details(self, record: dict[str, Any], optimizer: Any) -> None:  # noqa: ANN401 - torch's own class
        """Add facts of each tensor to a record."""
        modules = self.batches.modules()
        record["details"] |= optimizers.details(optimizer, optimizers.parameters_of(optimizer, names_of(modules)))
        if buffers := buffers_of(modules):
            record["details"]["buffers"] = {key: facts(buffer) for key, buffer in buffers.items()}


def enumerate_named(digests: list[str]) -> list[tuple[str, object]]:
    """Return digests with their places, as a digest over them wants them."""
    return [(str(number), digest) for number, digest in enumerate(digests)]


def _overall(record: dict[str, Any]) -> str:
    """Return the digest of all that a step depends on."""
    hasher = new_hash()
    for part in ("rank", "optimizer", "components", "values", "batches"):
        hasher.update(json.dumps(record[part], sort_keys=True).encode())
    return str(hasher.hexdigest())[:_DIGITS]


def _rank() -> int:
    """Return this process's rank: 0 where there is one only."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    given = os.environ.get("RANK", "0")
    return int(given) if given.isdecimal() else 0


def _is_capturing() -> bool:
    """Tell whether a CUDA graph is being captured, into which nothing else may be put."""
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())  # type: ignore[no-untyped-call]


def _percent() -> float:
    """Return the share of step time, in percent, that digests may take."""
    try:
        return float(os.environ.get("NINELIVES_BUDGET", "") or DEFAULT_PERCENT)
    except ValueError:
        return DEFAULT_PERCENT


def complain(error: Exception) -> None:
    """Tell, where somebody asked for it, why a step went without a record."""
    if os.environ.get("NINELIVES_PROBE_ERRORS"):
        sys.stderr.write(f"probe: {type(error).__name__}: {error}\n")

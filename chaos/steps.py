"""The probe's records of a life's steps, kept short where they are the reference's; pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from chaos.model import LifeRecord, StepRecord, StepRun
from chaos.model.steps import CARRIED


def shortened(
    records: Sequence[StepRecord], reference: Sequence[StepRecord], unsteady: frozenset[str] = frozenset()
) -> tuple[tuple[StepRecord, ...], tuple[StepRun, ...]]:
    """Return the records that are not the reference's, and where in the reference the others are.

    A record is the reference's where everything but its place in the life is: `ordinal`, `saves`, `details`, the
    components in `unsteady` and carried gradients (where they matter, the gradients differ) do not count. `expanded` is
    the way back, as far as those go.
    """
    places: dict[bytes, list[int]] = {}
    for place, record in enumerate(reference):
        places.setdefault(_essence(record, unsteady), []).append(place)
    others: list[StepRecord] = []
    runs: list[StepRun] = []
    for position, record in enumerate(records):
        found = places.get(_essence(record, unsteady), [])
        last = runs[-1] if runs else None
        follows = last is not None and last.first + last.count == position
        if last is not None and follows and last.reference + last.count in found:
            runs[-1] = replace(last, count=last.count + 1)
        elif found:
            runs.append(StepRun(first=position, reference=found[0], count=1))
        else:
            others.append(record)
    return tuple(others), tuple(runs)


def expanded(life: LifeRecord, reference: Sequence[StepRecord]) -> tuple[StepRecord, ...]:
    """Return all of a life's records in order; those taken from the reference count on in the life's own ordinals."""
    in_runs = {run.first + number: run.reference + number for run in life.step_runs for number in range(run.count)}
    others = iter(life.step_records)
    result: list[StepRecord] = []
    counts: dict[tuple[int, str], int] = {}
    for position in range(len(life.step_records) + len(in_runs)):
        record = reference[in_runs[position]] if position in in_runs else next(others)
        whose = (record.rank, record.optimizer)
        counts[whose] = counts.get(whose, 0) + 1
        result.append(replace(record, ordinal=counts[whose]) if position in in_runs else record)
    return tuple(result)


def num_digested(life: LifeRecord, reference: Sequence[StepRecord]) -> tuple[int, int]:
    """Return how many records of a life there are, and how many of them are digested whole."""
    others = [record.is_digested for record in life.step_records]
    known = [record.is_digested for run in life.step_runs for record in reference[run.reference :][: run.count]]
    return len(others) + len(known), sum(others) + sum(known)


def first_steps(life: LifeRecord, count: int) -> LifeRecord:
    """Return the life with what the probe saw of its first `count` steps only."""
    runs = tuple(replace(run, count=min(run.count, count - run.first)) for run in life.step_runs if run.first < count)
    others = life.step_records[: count - sum(run.count for run in runs)]
    return replace(life, step_digests=life.step_digests[:count], step_records=others, step_runs=runs)


def unsteady_components(first: Sequence[StepRecord], second: Sequence[StepRecord]) -> tuple[str, ...]:
    """Return the names of components on which two uninterrupted runs do not agree, at any step that both digested."""
    steps = {(record.rank, record.optimizer, record.ordinal): record for record in second}
    found: set[str] = set()
    for record in first:
        other = steps.get((record.rank, record.optimizer, record.ordinal))
        if other is None or not record.components or not other.components:
            continue
        names = record.components.keys() | other.components.keys()
        if record.is_digested != other.is_digested:  # the budget left out in one what is in the other
            names = {name for name in names if name in record.components and name in other.components}
        found.update(name for name in names if record.components.get(name) != other.components.get(name))
    return tuple(sorted(found))


def _essence(record: StepRecord, unsteady: frozenset[str]) -> bytes:
    """Return what makes a record the same as another one."""
    kept = {name: digest for name, digest in record.components.items() if name not in unsteady and name != CARRIED}
    return msgspec.json.encode(replace(record, ordinal=0, saves=0, components=kept, details={}), order="deterministic")

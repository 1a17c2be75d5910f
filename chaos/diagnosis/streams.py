"""The records of one run, by rank and by optimizer: what steps in one place is a stream of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msgspec.structs import replace

from chaos.model import StepRecord
from chaos.model.steps import DATA, WEIGHTS

Stream: TypeAlias = tuple[int, str]
"""A rank, and the name of an optimizer in it."""

Occurrences: TypeAlias = Mapping[str, Mapping[str, tuple[int, ...]]]
"""For each component, the positions in a stream at which each of its digests is found."""

NOT_COMPARED = ""
"""Stands for the digest of weights that two runs do not agree on: a record without any would pass as undigested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A run: for each rank the streams that step, in order; the records of each stream; their places in their rank."""

    ranks: Mapping[int, tuple[Stream, ...]]
    streams: Mapping[Stream, tuple[StepRecord, ...]]
    places: Mapping[Stream, tuple[int, ...]]

    @property
    def main(self) -> Stream:
        """The stream whose steps are counted as those of the run: the first to step in the lowest rank."""
        return self.ranks[min(self.ranks)][0]


def tracked(records: Sequence[StepRecord], unsteady: frozenset[str]) -> Track:
    """Return the records of a run in their streams, without what is not to be compared.

    A step without a record has an empty one, so that positions in a stream are the steps' numbers.
    """
    ranks: dict[int, list[Stream]] = {}
    streams: dict[Stream, list[StepRecord]] = {}
    places: dict[Stream, list[int]] = {}
    for record in records:
        stream = (record.rank, record.optimizer)
        order = ranks.setdefault(record.rank, [])
        for found in (*_gap(streams.get(stream, ()), record), record):
            places.setdefault(stream, []).append(len(order))
            streams.setdefault(stream, []).append(_steady(found, unsteady) if unsteady else found)
            order.append(stream)
    return Track(
        ranks={rank: tuple(order) for rank, order in ranks.items()},
        streams={stream: tuple(items) for stream, items in streams.items()},
        places={stream: tuple(items) for stream, items in places.items()},
    )


def without_idle(records: Sequence[StepRecord], reference: Track) -> Sequence[StepRecord]:
    """Return a life's records without those before its training: loading a checkpoint may step with no batch.

    An optimizer whose first step in the reference shows no batch either steps behind another one, or gets its batches
    inside of its steps: of such a one all are kept.
    """
    has_begun = {stream for stream, known in reference.streams.items() if not known[0].batches}
    skipped: dict[Stream, int] = {}
    found = []
    for record in records:
        stream = (record.rank, record.optimizer)
        if record.batches or record.is_left_out or stream not in reference.streams:
            has_begun.add(stream)
        if stream in has_begun:
            found.append(replace(record, ordinal=record.ordinal - skipped.get(stream, 0)))
        else:
            skipped[stream] = skipped.get(stream, 0) + 1
    return found or records


def occurrences(records: Sequence[StepRecord]) -> Occurrences:
    """Return where in a stream each digest of each component is found."""
    found: dict[str, dict[str, list[int]]] = {}
    for position, record in enumerate(records):
        for name, digest in record.components.items():
            found.setdefault(name, {}).setdefault(digest, []).append(position)
    return {name: {digest: tuple(at) for digest, at in digests.items()} for name, digests in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The reference: its records, and where in it each digest is found."""

    track: Track
    found: Mapping[Stream, Occurrences]

    def where(self, stream: Stream, component: str, digest: str | None) -> tuple[int, ...]:
        """Return the positions in a stream at which a component has this digest."""
        return self.found[stream].get(component, {}).get(digest, ()) if digest else ()


def known(records: Sequence[StepRecord], unsteady: frozenset[str]) -> Known:
    """Return the reference's records, ready to be looked up."""
    track = tracked(records, unsteady)
    return Known(track=track, found={stream: occurrences(items) for stream, items in track.streams.items()})


def _gap(before: Sequence[StepRecord], record: StepRecord) -> Iterable[StepRecord]:
    """Return empty records for the steps of a stream that have none, between the last one and this."""
    first = before[-1].ordinal + 1 if before else 1
    return (StepRecord(ordinal=at, rank=record.rank, optimizer=record.optimizer) for at in range(first, record.ordinal))


def _steady(record: StepRecord, unsteady: frozenset[str]) -> StepRecord:
    """Return a record without the components that two runs do not agree on."""
    components = {name: digest for name, digest in record.components.items() if name not in unsteady}
    if record.is_digested and WEIGHTS in unsteady:
        components[WEIGHTS] = NOT_COMPARED
    has_data = DATA not in unsteady
    return replace(
        record,
        components=components,
        details={name: tensors for name, tensors in record.details.items() if name not in unsteady},
        batches=record.batches if has_data else (),
        samples=record.samples if has_data else (),
        sketch=record.sketch if WEIGHTS not in unsteady else (),
    )

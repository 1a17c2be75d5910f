"""Digests of a life's first steps, from the lines that its ticks left: what it is held against its twin by."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import xxhash

from chaos.early_stop import MOST_STEPS
from chaos.model import StepRecord

_TICK: Final = b"tick"
_NOTHING: Final = b"-"  # in the place of the digest where the probe had no time to make one
_MOST_LINE_BYTES: Final = 64 << 20


def step_digests(ticks: Path, unsteady: Collection[str]) -> tuple[str, ...]:
    """Return a digest of everything at each of the first steps, empty for a step without one; nothing if none has one.

    Of a step with a record it is over the record, without the components named in `unsteady`: a generator that nobody
    seeded is in another state in every life.
    """
    found = tuple(islice(_digests(ticks, frozenset(unsteady)), MOST_STEPS))
    return found if any(found) else ()


def _digests(ticks: Path, unsteady: frozenset[str]) -> Iterator[str]:
    """Yield the digest of each step."""
    decoder = msgspec.json.Decoder(StepRecord)
    with ticks.open("rb") as file:
        while line := file.readline(_MOST_LINE_BYTES):
            word, _, rest = line.rstrip(b"\n").partition(b" ")
            digest, _, text = rest.partition(b" ")
            if word != _TICK:
                continue
            if not text:
                yield "" if digest == _NOTHING else digest.decode("utf-8", "replace")
                continue
            try:
                yield _digest_of(decoder.decode(text), unsteady)
            except msgspec.DecodeError:
                yield ""


def _digest_of(record: StepRecord, unsteady: frozenset[str]) -> str:
    """Return the digest of all that a step depends on; empty where not all of it was digested."""
    if not record.is_digested:
        return ""
    components = {name: digest for name, digest in record.components.items() if name not in unsteady}
    essence = (record.rank, record.optimizer, components, record.values, record.batches)
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(essence, order="deterministic"))

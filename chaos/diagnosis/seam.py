"""Where a life first differs from the reference: the records of all ranks and optimizers there, beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from chaos.diagnosis.alignment import Alignment
from chaos.diagnosis.streams import Known, Stream, Track
from chaos.model import StepRecord
from chaos.model.steps import BUFFERS, CARRIED, DATA, GRADIENTS, GROUP_PREFIX, STATE_PREFIX, WEIGHTS

_RNG_PREFIX = "rng."


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A record of a life and the reference's that it should be.

    `at` is the position of the life's in its stream, `should_be` that of the reference's; `differs` are the names of
    the components that are not the same. `has_gap`: what differs may follow from a difference that shows nowhere else,
    since the step before was not digested, or has used these data already (in a closure).
    """

    stream: Stream
    at: int
    should_be: int
    life: StepRecord
    reference: StepRecord
    differs: frozenset[str]
    has_gap: bool

    @property
    def step(self) -> int:
        """The reference's step, from 1."""
        return self.should_be + 1

    @property
    def is_digested(self) -> bool:
        """Whether all components can be compared."""
        return self.life.is_digested and self.reference.is_digested

    def has_other(self, *names: str) -> bool:
        """Tell whether any of these components differs."""
        return not self.differs.isdisjoint(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """The first place at which anything differs.

    `mains` are the records at that place, one a rank; `others` those of the optimizers that step next in each rank, of
    which only what belongs to them alone counts: the rest may follow from the step between.
    """

    reference: Known
    life: Track
    alignment: Alignment
    mains: tuple[Pair, ...]
    others: tuple[Pair, ...]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All of them."""
        return self.mains + self.others

    def any_other(self, rank: int | None, *names: str) -> bool:
        """Tell whether a component differs in any record of a rank (None: of any)."""
        return any(pair.has_other(*names) for pair in self.pairs if rank in (None, pair.stream[0]))

    def following(self, pair: Pair) -> tuple[StepRecord, ...]:
        """Return the life's records of a stream from a pair on."""
        return self.life.streams[pair.stream][pair.at :]

    def next(self, pair: Pair) -> Pair | None:
        """Return the pair of the step after, of which only what depends on no weights says anything (None: none is)."""
        own, other = self.following(pair)[1:2], self.records(pair)[pair.should_be + 1 :][:1]
        if not own or not other:
            return None
        return replace(
            pair,
            at=pair.at + 1,
            should_be=pair.should_be + 1,
            life=own[0],
            reference=other[0],
            differs=differing(own[0], other[0]),
        )

    def records(self, pair: Pair) -> tuple[StepRecord, ...]:
        """Return all of the reference's records of a pair's stream."""
        return self.reference.track.streams[pair.stream]


def find_seam(life: Track, reference: Known, alignment: Alignment) -> Seam | None:
    """Return the first place at which a life is not the reference's (None: it is, all the way)."""
    first = {
        stream: pair
        for stream in _common(life, reference)
        if (pair := next((pair for pair in _pairs(stream, life, reference, alignment) if pair.differs), None))
    }
    if not first:
        return None
    place = min(reference.track.places[stream][pair.should_be] for stream, pair in first.items())
    mains: list[Pair] = []
    others: list[Pair] = []
    for stream in _common(life, reference):
        pair = _pair_from(stream, place, life, reference, alignment)
        if pair is not None:
            is_main = reference.track.places[stream][pair.should_be] == place
            (mains if is_main else others).append(pair)
    return Seam(reference=reference, life=life, alignment=alignment, mains=tuple(mains), others=tuple(others))


def compared(life: StepRecord, reference: StepRecord) -> frozenset[str]:
    """Return the names of the components of two records that can be compared.

    Generators and data that one of the two shows and the other does not are not compared; nor are gradients where the
    data are not, since they may be those of the step before (of a closure), nor buffers, since no module was seen yet.
    Of records that were not digested, neither is what was left out.
    """
    is_digested = life.is_digested and reference.is_digested
    names = life.components.keys() | reference.components.keys()
    return frozenset(name for name in names if _can_be_compared(name, life, reference, is_digested=is_digested))


def differing(life: StepRecord, reference: StepRecord) -> frozenset[str]:
    """Return the names of the components that are not the same in two records."""
    names = compared(life, reference)
    return frozenset(name for name in names if life.components.get(name) != reference.components.get(name))


def _can_be_compared(name: str, life: StepRecord, reference: StepRecord, *, is_digested: bool) -> bool:
    """Tell whether a difference of a component means anything."""
    if name == CARRIED:
        return False  # it is told by the gradients, and explains them
    if name == DATA or name.startswith(_RNG_PREFIX):
        return name in life.components and name in reference.components
    if name in (GRADIENTS, BUFFERS) and (DATA in life.components) != (DATA in reference.components):
        return False
    if name.startswith(GROUP_PREFIX):
        return all(any(key.startswith(GROUP_PREFIX) for key in record.components) for record in (life, reference))
    is_left_out = name in (WEIGHTS, GRADIENTS, BUFFERS) or name.startswith(STATE_PREFIX)
    return is_digested or not is_left_out


def _common(life: Track, reference: Known) -> list[Stream]:
    """Return the streams that both have, in the reference's order."""
    return [stream for stream in reference.track.streams if stream in life.streams]


def _pairs(stream: Stream, life: Track, reference: Known, alignment: Alignment) -> Iterator[Pair]:
    """Yield a stream's records beside those that they should be, as far as the reference goes."""
    done = alignment.updates[stream]
    records = reference.track.streams[stream]
    has_gap, is_closed = False, not records[0].batches
    for at, (own, other) in enumerate(zip(life.streams[stream], records[done:], strict=False)):
        differs = differing(own, other)
        if own.is_digested and other.is_digested and not differs & {WEIGHTS, GRADIENTS}:
            differs -= {DATA}  # the same gradients: the rest of a step that was begun, or a pass that led to nothing
        yield Pair(
            stream=stream,
            at=at,
            should_be=done + at,
            life=own,
            reference=other,
            differs=differs,
            has_gap=has_gap or (is_closed and at > 0 and DATA in differs),
        )
        has_gap = not (own.is_digested and other.is_digested)


def _pair_from(stream: Stream, place: int, life: Track, reference: Known, alignment: Alignment) -> Pair | None:
    """Return a stream's first pair at a place of its rank, or after it."""
    places = reference.track.places[stream]
    pairs = _pairs(stream, life, reference, alignment)
    return next((pair for pair in pairs if places[pair.should_be] >= place), None)


def overrun(life: Track, reference: Known, alignment: Alignment) -> int:
    """Return how many steps a life went on for after the reference's last one."""
    extra = (
        alignment.updates[stream] + len(life.streams[stream]) - len(reference.track.streams[stream])
        for stream in _common(life, reference)
    )
    return max(0, max(extra, default=0))

"""The steps of a lineage that count: a killed life's steps after the point that the next one resumed from do not.

Where a life resumed is told by the content that it stepped with: its weights or its optimizer's state are those of a
record of an earlier life or of the reference, and of several such records the one that agrees in most of the state is
meant. Where neither is known, the newest save that it found tells, but
only if its number of steps or its first line says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from chaos.checks.lineage import is_completed, without_damaged
from chaos.checks.recency import KnownSave, SaveOrder
from chaos.model import LifeRecord, Outcome, Record, Reference, StepRecord
from chaos.model.steps import DATA, GRADIENTS, STATE_PREFIX, WEIGHTS
from chaos.steps import expanded

_COUNTER = f"{STATE_PREFIX}step"


class Stream(Record, kw_only=True):
    """The steps of one optimizer in one process; of some the probe's budget may have left all out but their number."""

    rank: int
    optimizer: str

    def of(self, records: Iterable[StepRecord]) -> tuple[StepRecord, ...]:
        """Return the stream's records of training, in order."""
        return tuple(record for record in self.own(records) if is_training(record))

    def own(self, records: Iterable[StepRecord]) -> tuple[StepRecord, ...]:
        """Return all of the stream's records."""
        return tuple(record for record in records if self._is_own(record))

    def is_whole(self, records: Iterable[StepRecord]) -> bool:
        """Tell whether there is a record of each of its steps."""
        ordinals = [record.ordinal for record in records if self._is_own(record)]
        return ordinals == list(range(1, len(ordinals) + 1))

    def _is_own(self, record: StepRecord) -> bool:
        return (record.rank, record.optimizer) == (self.rank, self.optimizer)


def is_training(record: StepRecord) -> bool:
    """Tell whether a step followed on a batch; some loaders of checkpoints make one that does not.

    Where the batches are given in a closure, inside the step, they are in the next record.
    """
    return bool(record.batches) or record.is_left_out


class EffectiveStep(Record, kw_only=True):
    """One step that counts: the number of its life, and whether that life, a later one, began with it."""

    life: int
    is_resumed: bool
    record: StepRecord


def streams_of(records: Iterable[StepRecord]) -> tuple[Stream, ...]:
    """Return for each rank the stream that was given most batches: the other optimizers were given the same ones."""
    counts: dict[tuple[int, str], int] = {}
    for record in records:
        whose = (record.rank, record.optimizer)
        counts[whose] = counts.get(whose, 0) + len(record.batches)
    largest: dict[int, str] = {}
    for (rank, optimizer), count in counts.items():
        if count > counts.get((rank, largest.get(rank, "")), 0):
            largest[rank] = optimizer
    return tuple(Stream(rank=rank, optimizer=largest[rank]) for rank in sorted(largest))


def is_plainly_the_same(reference: Reference, outcome: Outcome) -> bool:
    """Tell whether a lineage's lives are pieces of the reference in every component, each going on where it can."""
    done = 0
    for life in outcome.lives:
        if life.step_records or len(life.step_runs) > 1:
            return False
        for run in life.step_runs:
            if run.reference > done or not reference.steps[run.reference].is_digested:
                return False
            done = run.reference + run.count
    return done > 0


def effective_steps(
    reference: Reference, order: SaveOrder, outcome: Outcome, stream: Stream
) -> tuple[EffectiveStep, ...] | None:
    """Return the steps of a lineage that count, in order; None where it cannot be told which ones do.

    `order` is that of the reference's saves.
    """
    expected = stream.of(reference.steps)
    done: tuple[EffectiveStep, ...] = ()
    past = [_Piece(start=0, records=stream.own(reference.steps), unsteady=frozenset(reference.unsteady))]
    for position, life in enumerate(outcome.lives):
        everything = expanded(life, reference.steps)
        records = stream.of(everything)
        if not stream.is_whole(everything):
            return None
        if not records:
            continue
        saved = _saved_before(reference, order, outcome, position, stream, len(expected) - len(records))
        start = _start(stream.own(everything), past, saved) if position else 0
        if start is None or start > len(done):
            return None
        done = done[:start] + tuple(_steps(life, records, is_later=position > 0))
        past.append(_Piece(start=start, records=stream.own(everything)))
    return done


def _steps(life: LifeRecord, records: Sequence[StepRecord], *, is_later: bool) -> Iterator[EffectiveStep]:
    for number, record in enumerate(records):
        yield EffectiveStep(life=life.number, is_resumed=is_later and number == 0, record=record)


class _Piece(Record, kw_only=True):
    """Records that a life may have resumed next to, the first of which comes after `start` effective steps."""

    start: int
    records: tuple[StepRecord, ...]
    unsteady: frozenset[str] = frozenset()

    def spots(self, wanted: Mapping[str, str]) -> Iterator[tuple[int, StepRecord]]:
        """Yield the effective steps done before each record that has one of `wanted`, and the record."""
        known = {name: digest for name, digest in wanted.items() if name not in self.unsteady}
        at = self.start
        for record in self.records:
            if any(record.components.get(name) == digest for name, digest in known.items()):
                yield at, record
            at += is_training(record)


def _start(own: Sequence[StepRecord], past: Sequence[_Piece], saved: int | None) -> int | None:
    """Return how many effective steps were done when a life resumed (None: nothing tells).

    `saved` is where the newest save says that it should have been, if that is confirmed. A step before the first batch
    tells less: what some loaders step with is what was there before they load, which is the start of a training.
    """
    first = next((number for number, record in enumerate(own) if is_training(record)), len(own))
    later = [number for number in range(first, len(own)) if own[number].is_digested][:1]
    for number in (*later, *reversed(range(first))):
        before = sum(is_training(record) for record in own[:number])
        best = _start_by(own[number], past, saved, before) if own[number].is_digested else None
        if best is not None and (best or number >= first):
            return best
    return saved


def _start_by(record: StepRecord, past: Sequence[_Piece], saved: int | None, before: int) -> int | None:
    """Return the same by one record, which a life made after so many steps of training."""
    by_weights = {WEIGHTS: record.components[WEIGHTS]}
    by_state = {
        name: digest for name, digest in record.components.items() if name.startswith(STATE_PREFIX) and name != _COUNTER
    }
    # The optimizer's state at the start of a training is also what a new one has; new weights are as they were then.
    spots = [(at - before, found) for piece in past for at, found in piece.spots(by_weights)]
    spots += [(at - before, found) for piece in past for at, found in piece.spots(by_state) if at]
    return _best([(at, found) for at, found in spots if at >= 0], record, saved) if spots else None


def _best(spots: Sequence[tuple[int, StepRecord]], record: StepRecord, saved: int | None) -> int | None:
    """Return the place that agrees with `record` in most of the state, in doubt the one that blames nobody."""
    likeness = [(_num_equal(found, record), found.batches == record.batches, at) for at, found in spots]
    most = max((equal for equal, _, _ in likeness), default=0)
    likest = [(has_batches, at) for equal, has_batches, at in likeness if equal == most]
    places = {at for has_batches, at in likest if has_batches} or {at for _, at in likest}
    if saved in places:
        return saved
    return places.pop() if len(places) == 1 else None


def _num_equal(one: StepRecord, other: StepRecord) -> int:
    """Count the components that two records agree on, but for the data and what comes of it."""
    names = one.components.keys() - {DATA, GRADIENTS}
    return sum(one.components[name] == other.components.get(name) for name in names)


def _saved_before(
    reference: Reference, order: SaveOrder, outcome: Outcome, position: int, stream: Stream, left_out: int
) -> int | None:
    """Return how many steps of the stream the newest save was of that a life found, where its own count says the same.

    A background writer begins its save later than the state it saves, so the save's place alone is no proof. `left_out`
    is how many steps fewer than the reference the life did.
    """
    if position == 0:
        return None
    life = outcome.lives[position]
    newest = order.newest_save(without_damaged(outcome.lives[position - 1]))
    ticks = newest.ticks_before if newest is not None else 0
    if newest is None or ticks is None or len(reference.steps) != reference.profile.total_steps:
        return None
    start = len(stream.of(reference.steps[:ticks]))
    is_last = life is outcome.lives[-1] and is_completed(outcome)
    return start if (is_last and left_out == start) or _has_right_line(life, newest) else None


def _has_right_line(life: LifeRecord, newest: KnownSave) -> bool:
    """Tell whether a life's first line has the number that only one resumed from the newest save begins with."""
    return life.first_step is not None and life.first_step == newest.next_step

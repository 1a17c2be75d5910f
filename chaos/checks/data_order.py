"""`data_repeated`, `data_skipped`: over a lineage's effective steps each sample is seen as often as in the reference.

Batches are known by the digest of what was given to the model, or by the positions of their samples in the data set,
where a loader showed them. A finding needs proof: something that the reference saw before is seen once too often, or
what follows is what the reference saw later, and what lies between is missed. A lineage that only saw what the
reference never did, or the same in another order, is not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

from msgspec.structs import replace

from chaos.checks.effective import EffectiveStep, Stream, effective_steps, is_plainly_the_same, streams_of
from chaos.checks.lineage import conclude, crash_point_of
from chaos.checks.recency import SaveOrder, order_of
from chaos.checks.shifts import Needed, Shift, is_borne_out, more_and_less_often, walk
from chaos.model import (
    CheckName,
    CheckResult,
    Outcome,
    Record,
    Reference,
    StepRecord,
    Target,
    Violation,
)
from chaos.model.steps import DATA, GRADIENTS, WEIGHTS

# One batch seen again is proof; that one comes too early is none, it may only be out of order.
_BATCHES = Needed(again=1, left_out=2)
# A few samples may follow each other by chance in two orders.
_SAMPLES = Needed(again=8, left_out=8)
_MOST_NAMES = 3


def check_repeated(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look for lineages that saw batches or samples again."""
    _ = target
    return _check(CheckName.DATA_REPEATED, reference, outcomes)


def check_skipped(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look for lineages that left batches or samples out."""
    _ = target
    return _check(CheckName.DATA_SKIPPED, reference, outcomes)


def _check(name: CheckName, reference: Reference, outcomes: tuple[Outcome, ...]) -> CheckResult:
    """Judge each lineage's streams; one violation a lineage at most."""
    streams = streams_of(reference.steps)
    if not streams:
        return conclude(name, 0, (), "the probe saw no batches in the reference: nothing is known of the data's order")
    if DATA in reference.unsteady:
        return conclude(name, 0, (), "two uninterrupted runs of the target were given different batches")
    order = order_of(reference)
    judged = 0
    violations = []
    for outcome in outcomes:
        seen = _told(reference, order, outcome, streams)
        judged += seen is not None and _is_resumed(outcome)
        mine = [fact for fact in seen or () if fact.check is name]
        if mine:
            violations.append(_violation(outcome, mine[0], has_ranks=len(streams) > 1))
    reason = "no interrupted lineage showed batches that can be compared with the reference's"
    return conclude(name, judged, violations, reason)


class _Fact(Record, kw_only=True):
    """What is wrong with the data of one stream, from which step of which life on."""

    check: CheckName
    rank: int
    step: int
    life: int
    words: str


class _Call(Record, kw_only=True):
    """One batch that was given to a model: the step, by the reference's count, and the life that it was in.

    Without a digest nobody saw it.
    """

    batch: str
    samples: tuple[int, ...]
    step: int
    life: int

    @property
    def token(self) -> Hashable:
        """Return what the batch is known by (None: by nothing)."""
        return self.samples or self.batch or None


def _told(
    reference: Reference, order: SaveOrder, outcome: Outcome, streams: Iterable[Stream]
) -> tuple[_Fact, ...] | None:
    """Return what is wrong with a lineage's data (nothing: it is the reference's); None where it cannot be told."""
    if is_plainly_the_same(reference, outcome):
        return ()
    facts: list[_Fact] = []
    is_known = True
    for stream in streams:
        steps = effective_steps(reference, order, outcome, stream)
        found = _compared(stream, steps, stream.of(reference.steps)) if steps else None
        is_known = is_known and found is not None
        facts += found or ()
    return tuple(facts) if facts or is_known else None


def _is_resumed(outcome: Outcome) -> bool:
    """Tell whether a later life trained."""
    return any(life.step_records or life.step_runs for life in outcome.lives[1:])


def _compared(
    stream: Stream, steps: Sequence[EffectiveStep], expected: Sequence[StepRecord]
) -> tuple[_Fact, ...] | None:
    """Compare the batches of a lineage's steps with the reference's; None where that shows neither good nor bad."""
    number = _calls_each(expected)
    if number is None:
        return None
    seen = [_calls_of(step, position, expected, number) for position, step in enumerate(steps)]
    wanted = [_calls(record, _step(expected, position), 0, number) for position, record in enumerate(expected)]
    if _are_known(seen, wanted):
        seen, wanted = ([_without_samples(calls) for calls in steps] for steps in (seen, wanted))
    elif all(any(call.samples for call in calls) for calls in (*seen, *wanted)):
        return _compared_samples(stream, _flat(seen), _flat(wanted))
    begins = {position for position, step in enumerate(steps) if step.is_resumed}
    return _compared_batches(stream, seen, wanted, begins)


def _are_known(seen: Sequence[Sequence[_Call]], wanted: Sequence[Sequence[_Call]]) -> bool:
    """Tell whether all batches are the reference's, byte for byte: then their digests tell more than their samples.

    Positions in a data set mean something else in the next one (shards of a larger one).
    """
    known = {call.batch for call in _flat(wanted)}
    return known.issuperset(call.batch for call in _flat(seen))


def _without_samples(calls: Iterable[_Call]) -> tuple[_Call, ...]:
    """Return batches that are known by their digests."""
    return tuple(replace(call, samples=()) for call in calls)


def _calls_each(expected: Sequence[StepRecord]) -> int | None:
    """Return how many batches a step that nobody saw was given: as many as the others (None: these do not agree)."""
    numbers = {len(_calls(record, 0, 0, 0)) for record in expected if record.batches}
    if len(numbers) == 1:
        return numbers.pop()
    return 1 if all(record.batches for record in expected) else None


def _compared_batches(
    stream: Stream, seen: Sequence[Sequence[_Call]], wanted: Sequence[Sequence[_Call]], begins: Collection[int]
) -> tuple[_Fact, ...] | None:
    """Compare batch by batch; `begins` are the positions at which lives resumed: there all must have been seen."""
    calls, reference = _flat(seen), _flat(wanted)
    tokens, known = [call.token for call in calls], [call.token for call in reference]
    found = walk(tokens, known, _BATCHES, ends_at_loss=False)
    proven = [shift for shift in found.shifts if is_borne_out(shift, tokens, known)]
    if proven:
        return tuple(_of_shift(stream, shift, calls, reference, _batches_in_words) for shift in proven)
    agreed = [_agrees(mine, theirs) for mine, theirs in zip(seen, wanted, strict=False)]  # either may end earlier
    has_begun_so = all(agreed[position] for position in begins if position < len(agreed))
    is_same = not found.shifts and not found.strays and False not in agreed and has_begun_so
    return () if is_same else None


def _agrees(mine: Sequence[_Call], theirs: Sequence[_Call]) -> bool | None:
    """Tell whether a step was given a batch of the reference's step (None: nobody saw); the model's own may differ."""
    pairs = [{call.token for call in calls} - {None} for calls in (mine, theirs)]
    return bool(pairs[0] & pairs[1]) if all(pairs) else None


def _compared_samples(stream: Stream, seen: Sequence[_Call], wanted: Sequence[_Call]) -> tuple[_Fact, ...] | None:
    """Compare sample by sample."""
    calls, reference = _single(seen), _single(wanted)
    samples, known = _numbers(calls), _numbers(reference)
    found = walk(samples, known, _SAMPLES, ends_at_loss=True)
    proven = [shift for shift in found.shifts if is_borne_out(shift, samples, known)]
    if proven:
        return tuple(_of_shift(stream, shift, calls, reference, _samples_in_words) for shift in proven)
    if found.shifts:
        return None
    if found.lost_at is None:
        return () if found.matches == min(len(samples), len(known)) else None
    again, left_out = more_and_less_often(samples, known)
    first = calls[found.lost_at]
    told = ((CheckName.DATA_REPEATED, again, "seen again"), (CheckName.DATA_SKIPPED, left_out, "left out"))
    facts = tuple(
        _Fact(
            check=name,
            rank=stream.rank,
            step=first.step,
            life=first.life,
            words=f"From step {first.step} on the samples come in another order than in the reference: "
            f"{_named(numbers)} {'is' if len(numbers) == 1 else 'are'} {what} in life {first.life}.",
        )
        for name, numbers, what in told
        if numbers
    )
    return facts or None


def _calls_of(step: EffectiveStep, position: int, expected: Sequence[StepRecord], number: int) -> tuple[_Call, ...]:
    """Return the batches of an effective step; `number` if nobody saw them.

    Where a life begins in the middle of an accumulation, the batches before are in the gradients that it loaded.
    """
    calls = _calls(step.record, _step(expected, position), step.life, number)
    if position >= len(expected):
        return calls
    before = _calls(expected[position], _step(expected, position), step.life, number)
    if _is_same_update(step.record, expected[position]):
        return before  # whatever else was given to the model has led to nothing
    if not step.is_resumed:
        return calls
    return before[: max(len(before) - len(calls), 0)] + calls


def _is_same_update(one: StepRecord, other: StepRecord) -> bool:
    """Tell whether two steps had the same weights and gradients, so that what they were given was the same."""
    mine, theirs = one.components, other.components
    return GRADIENTS in mine and all(mine.get(name) == theirs.get(name) for name in (WEIGHTS, GRADIENTS))


def _step(expected: Sequence[StepRecord], position: int) -> int:
    """Return the reference's number of the step at a position; those that come after its end are counted on."""
    if position < len(expected):
        return expected[position].ordinal
    return expected[-1].ordinal + position + 1 - len(expected)


def _calls(record: StepRecord, step: int, life: int, number: int) -> tuple[_Call, ...]:
    """Return the batches of one step, each once: how often a closure is called depends on the weights.

    Of a step that the budget left out they are `number`, unseen.
    """
    if not record.batches:
        return (_Call(batch="", samples=(), step=step, life=life),) * number
    samples = record.samples or ((),) * len(record.batches)
    calls = [
        _Call(batch=batch, samples=numbers, step=step, life=life)
        for batch, numbers in zip(record.batches, samples, strict=False)  # a loader may not have shown all
    ]
    return tuple({call.token: call for call in calls}.values())


def _flat(steps: Iterable[Sequence[_Call]]) -> list[_Call]:
    return [call for calls in steps for call in calls]


def _single(calls: Iterable[_Call]) -> list[_Call]:
    """Return one call for each sample that a loader showed."""
    return [
        _Call(batch=call.batch, samples=(number,), step=call.step, life=call.life)
        for call in calls
        for number in call.samples
    ]


def _numbers(calls: Iterable[_Call]) -> list[int]:
    return [call.samples[0] for call in calls]


_Words = Callable[[Sequence[_Call]], str]


def _of_shift(
    stream: Stream, shift: Shift, calls: Sequence[_Call], reference: Sequence[_Call], in_words: _Words
) -> _Fact:
    """Say from which place of the reference the data went on."""
    first, there = calls[shift.at], reference[shift.to]
    begin = shift.to if shift.is_back else shift.expected
    missed = reference[begin : begin + shift.number]
    verb = "is" if shift.number == 1 else "are"
    what = "seen again" if shift.is_back else "left out"
    return _Fact(
        check=CheckName.DATA_REPEATED if shift.is_back else CheckName.DATA_SKIPPED,
        rank=stream.rank,
        step=first.step,
        life=first.life,
        words=f"Step {first.step} was given the data of step {there.step} of the reference: {in_words(missed)} {verb} "
        f"{what} in life {first.life}, {_range(missed)}.",
    )


def _batches_in_words(calls: Sequence[_Call]) -> str:
    return f"{len(calls)} {'batch' if len(calls) == 1 else 'batches'}"


def _samples_in_words(calls: Sequence[_Call]) -> str:
    return _named(_numbers(calls))


def _range(calls: Sequence[_Call]) -> str:
    """Return the reference's steps that batches are of."""
    first, last = calls[0].step, calls[-1].step
    return f"that of step {first}" if first == last else f"those of steps {first} to {last}"


def _named(numbers: Sequence[int]) -> str:
    """Count samples and name the first of them."""
    names = ", ".join(str(number) for number in numbers[:_MOST_NAMES])
    more = f" and {len(numbers) - _MOST_NAMES} more" if len(numbers) > _MOST_NAMES else ""
    return f"{len(numbers)} {'sample' if len(numbers) == 1 else 'samples'} ({names}{more})"


def _violation(outcome: Outcome, fact: _Fact, *, has_ranks: bool) -> Violation:
    position = next(number for number, life in enumerate(outcome.lives) if life.number == fact.life)
    before = outcome.lives[position - 1] if position else None
    rank = f"Rank {fact.rank}: " if has_ranks else ""
    return Violation(
        check=fact.check,
        trial=outcome.trial.number,
        life=fact.life,
        crash_point=None if before is None else crash_point_of(before),
        step=fact.step,
        detail=f"{rank}{fact.words}",
    )

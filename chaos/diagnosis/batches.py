"""How the data differ: batches seen again, left out, in another order; or a step's accumulation that is not whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.diagnosis.accumulation import lost_accumulation
from chaos.diagnosis.epochs import Epochs, batches_until_repeat, epochs_of
from chaos.diagnosis.finding import lost, plural
from chaos.diagnosis.seam import Pair, Seam
from chaos.diagnosis.tensors import some
from chaos.model import Component, LostState, Manner, StepRecord
from chaos.model.steps import DATA, RNG_CUDA, RNG_NUMPY, RNG_RANDOM, RNG_TORCH

_LOOKED_AT = 64  # batches that are followed
_ENOUGH = 3  # batches in a row that are no chance
_MOST_SAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch: its digest, its samples, and the position of the record that it is of.

    Of a step that was left out, both are empty.
    """

    digest: str
    samples: tuple[int, ...]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """How a record's batches differ.

    `loss` is that of the data, `accumulation` that of a number of batches that is not the reference's. `position` is
    that of the reference's record whose data these are. `is_in_place` tells whether that is as far into an epoch as it
    should be (None: not known), `begins_epoch` whether an epoch begins that does not in the reference. `keeps_first`:
    the first batch is right; `changes_size`: batches have other numbers of samples.
    """

    loss: LostState | None = None
    accumulation: LostState | None = None
    position: int | None = None
    is_in_place: bool | None = None
    begins_epoch: bool = False
    keeps_first: bool = False
    changes_size: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """A life's batches from the first that differs on; all of the reference's, and where in it they should be."""

    pair: Pair
    life: tuple[Batch, ...]
    reference: tuple[Batch, ...]
    should_be: int
    epochs: Epochs | None

    @property
    def expected(self) -> tuple[Batch, ...]:
        """The reference's batches that the life's should be."""
        return self.reference[self.should_be : self.should_be + len(self.life)]


def lost_data(pair: Pair, seam: Seam) -> Data:
    """Say how the batches of a pair differ; nothing where they do not, or where only their digest is known to."""
    if DATA not in pair.differs:
        return Data()
    own, other = pair.life.batches, pair.reference.batches
    if not own or not other:
        return Data(loss=lost(pair, Component.DATA, Manner.DIFFERENT, "the data are not the reference's"))
    begun = _begun_within(own, other)
    if begun and not (len(own) >= len(other) and _drew_as_often(pair, seam)):
        return Data(accumulation=lost_accumulation(pair, begun))
    same = _num_same(own, other)
    if same == min(len(own), len(other)):
        return Data(accumulation=_other_number(pair), keeps_first=True)
    view = _view(pair, seam, same)
    return _data(view, keeps_first=same > 0)


def _begun_within(own: Sequence[str], other: Sequence[str]) -> int:
    """Return how many of the reference's batches of a step had gone before, where the life begins in the midst of it.

    A life that accumulates as many as the reference from there on may have lost the first ones all the same.
    """
    for begun in range(1, len(other)):
        rest = other[begun:]
        if own[: len(rest)] == rest and (len(own) >= len(other) or len(own) == len(rest)):
            return begun if other.count(own[0]) == 1 else 0
    return 0


def _drew_as_often(pair: Pair, seam: Seam) -> bool:
    """Tell whether as many numbers were drawn as in a step of the reference, so that no batch was used before.

    Dropout's generators tell best; those that the reference does not draw from tell nothing.
    """
    before = seam.records(pair)[max(0, pair.should_be - 1)].components
    moving = (
        name
        for name in (RNG_TORCH, RNG_CUDA, RNG_NUMPY, RNG_RANDOM)
        if before.get(name) != pair.reference.components.get(name) and name in pair.life.components
    )
    best = next(moving, None)
    return best is not None and bool(seam.reference.where(pair.stream, best, pair.life.components[best]))


def _num_same(own: Sequence[str], other: Sequence[str]) -> int:
    """Return how many batches are the same, from the first on."""
    pairs = zip(own, other, strict=False)
    return next((number for number, (one, two) in enumerate(pairs) if one != two), min(len(own), len(other)))


def _other_number(pair: Pair) -> LostState:
    """Say that a step used another number of batches."""
    used, other = plural(len(pair.life.batches), "batch"), len(pair.reference.batches)
    return lost(pair, Component.ACCUMULATION, Manner.DIFFERENT, f"the step used {used}, the reference {other}")


def _view(pair: Pair, seam: Seam, same: int) -> _View:
    """Lay the life's batches beside the reference's, from the first one that differs."""
    reference = _flat(seam.records(pair))
    before = sum(batch.position < pair.should_be for batch in reference)
    return _View(
        pair=pair,
        life=_flat(seam.following(pair))[same:],
        reference=reference,
        should_be=before + same,
        epochs=epochs_of([batch.samples if batch.digest else None for batch in reference]),
    )


def _flat(records: Sequence[StepRecord]) -> tuple[Batch, ...]:
    """Return the batches of records, one behind the other; a step that was left out has as many as most have."""
    usual = Counter(len(record.batches) for record in records if record.batches).most_common(1)
    left_out = ("",) * (usual[0][0] if usual else 0)
    return tuple(
        Batch(
            digest=digest,
            samples=record.samples[number] if number < len(record.samples) else (),
            position=position,
        )
        for position, record in enumerate(records)
        for number, digest in enumerate(left_out if record.is_left_out else record.batches)
    )


def _data(view: _View, *, keeps_first: bool) -> Data:
    """Say how the data differ from a batch on."""
    begins_epoch = _begins_epoch(view)
    found = _located(view)
    is_other_order = found is None and _is_known(view)
    if found is not None:
        loss = _moved(view, found)
    elif is_other_order:
        loss = _reordered(view, begins_epoch=begins_epoch)
    else:
        loss = lost(view.pair, Component.DATA, Manner.DIFFERENT, _never_seen(view))
    is_in_place = _is_in_place(view, found)
    if found is None and begins_epoch:
        is_in_place = False
    position = None if found is None else view.reference[found].position
    has_other_number = len(view.pair.life.batches) != _num_batches(view, position)
    return Data(
        loss=loss,
        accumulation=_other_number(view.pair) if has_other_number else None,
        position=position,
        is_in_place=is_in_place,
        begins_epoch=begins_epoch,
        keeps_first=keeps_first,
        changes_size=_changes_size(view),
    )


def _num_batches(view: _View, position: int | None) -> int:
    """Return how many batches the step at a position has: that which the data are of, or else that it should be."""
    at = view.pair.should_be if position is None else position
    return sum(batch.position == at for batch in view.reference)


def _located(view: _View) -> int | None:
    """Return where in the reference the life's batches go on (None: nowhere for long enough)."""
    at = [place for place, batch in enumerate(view.reference) if batch.digest == view.life[0].digest]
    lengths = {place: _run(view, place) for place in at if place != view.should_be}
    if not lengths:
        return _located_by_samples(view)
    whole = [place for place, length in lengths.items() if length >= _can_be(view, place)]
    longest = max(lengths.values())
    if not whole and longest < _ENOUGH and _is_permuted(view):
        return None
    return _likeliest(whole or [place for place, length in lengths.items() if length == longest], view)


def _located_by_samples(view: _View) -> int | None:
    """Find batches of the same samples with other contents, but not at the place where they should be."""
    first = view.life[0].samples
    at = [place for place, batch in enumerate(view.reference) if first and batch.samples == first]
    if view.should_be in at:
        return None
    return _likeliest(at, view) if at else None


def _likeliest(places: Sequence[int], view: _View) -> int:
    """Choose between places that are equally good.

    Where the data may have begun anew, they have: then it is the last such place before. Else it is the nearest.
    """
    before = [place for place in places if place < view.should_be]
    if 0 in places and before:
        return max(before)
    return min(places, key=lambda place: (abs(place - view.should_be), place))


def _run(view: _View, place: int) -> int:
    """Return how many batches in a row are the reference's from a place on; those left out may be."""
    pairs = zip(view.life[:_LOOKED_AT], view.reference[place:], strict=False)
    length = 0
    for own, other in pairs:
        if own.digest and other.digest and own.digest != other.digest:
            break
        length += 1
    return length


def _can_be(view: _View, place: int) -> int:
    """Return how many batches in a row there can be from a place on."""
    return min(_LOOKED_AT, len(view.life), len(view.reference) - place)


def _is_permuted(view: _View) -> bool:
    """Tell whether the life's next batches are the reference's next ones in another order."""
    own, other = Counter[str](), Counter[str]()
    for number, (one, two) in enumerate(zip(view.life[:_LOOKED_AT], view.expected, strict=False), start=1):
        if not one.digest or not two.digest:
            return False
        own[one.digest] += 1
        other[two.digest] += 1
        if number > 1 and own == other:
            return True
    return False


def _is_known(view: _View) -> bool:
    """Tell whether the life's batches are of data that the reference knows, though not in this order."""
    samples = {number for batch in view.reference for number in batch.samples}
    nearby = [batch for batch in view.life[:_LOOKED_AT] if batch.digest]
    if all(batch.samples for batch in nearby) and samples:
        has_other_content = view.life[0].samples == view.reference[min(view.should_be, len(view.reference) - 1)].samples
        if any(not batch.digest for batch in view.reference):
            samples = set(range(max(samples) + 1))  # those of the steps that were left out
        return not has_other_content and all(samples.issuperset(batch.samples) for batch in nearby)
    return _is_permuted(view)


def _begins_epoch(view: _View) -> bool:
    """Tell whether a whole epoch begins with the life's batches, where in the reference one is under way."""
    epochs = view.epochs
    if epochs is None or epochs.length is None or view.should_be >= len(epochs.places):
        return False
    if epochs.places[view.should_be] == 0 or not all(batch.samples for batch in view.life):
        return False
    return batches_until_repeat([batch.samples for batch in view.life]) == epochs.length


def _is_in_place(view: _View, found: int | None) -> bool | None:
    """Tell whether the data are as far into an epoch as they should be (None: not known)."""
    if view.epochs is None or found is None or view.should_be >= len(view.epochs.places):
        return None
    return view.epochs.places[found] == view.epochs.places[view.should_be]


def _changes_size(view: _View) -> bool:
    """Tell whether the first step's batches have other numbers of samples than the reference's."""
    own = [len(ids) for ids in view.pair.life.samples]
    return bool(own) and own != [len(ids) for ids in view.pair.reference.samples]


def _moved(view: _View, found: int) -> LostState:
    """Say which step's the data are, and how many batches that is away."""
    step, apart = view.reference[found].position + 1, found - view.should_be
    detail = f"the batch of step {view.pair.step} is the reference's of step {step}{_samples(view.life[0])}"
    if apart > 0:
        verb = "is" if apart == 1 else "are"
        return lost(view.pair, Component.DATA, Manner.SKIPPED, f"{detail}: {plural(apart, 'batch')} {verb} left out")
    if found == 0:
        detail += ": the data began anew"
    elif view.epochs is not None and view.epochs.places[found] == 0:
        detail += ": the epoch began anew"
    else:
        verb = "comes" if apart == -1 else "come"
        detail += f": {plural(-apart, 'batch')} {verb} again"
    return lost(view.pair, Component.DATA, Manner.REPEATED, detail)


def _reordered(view: _View, *, begins_epoch: bool) -> LostState:
    """Say that the data are known, and come in an order that the reference has not."""
    detail = f"the batch of step {view.pair.step} has samples that the reference knows{_samples(view.life[0])}"
    if begins_epoch:
        detail += ", but an epoch begins there, in another order: samples that were seen in this epoch come again"
        return lost(view.pair, Component.DATA, Manner.REPEATED, detail)
    if not view.life[0].samples:
        detail = f"from step {view.pair.step} on the reference's next batches come in another order"
        return lost(view.pair, Component.DATA, Manner.REORDERED, detail)
    again = ": samples that were seen in this epoch come again" if _is_seen_again(view) else ""
    return lost(view.pair, Component.DATA, Manner.REORDERED, f"{detail}, but in another order{again}")


def _is_seen_again(view: _View) -> bool:
    """Tell whether the reference has seen any of the first batch's samples in the epoch that is under way."""
    if view.epochs is None or view.should_be >= len(view.epochs.places):
        return False
    begun = view.reference[view.should_be - view.epochs.places[view.should_be] : view.should_be]
    return any(not set(view.life[0].samples).isdisjoint(batch.samples) for batch in begun)


def _never_seen(view: _View) -> str:
    """Say that a batch is not one of the reference's."""
    expected = view.expected
    if view.life[0].samples and expected and expected[0].samples == view.life[0].samples:
        return f"the batch of step {view.pair.step} has the right samples{_samples(view.life[0])} with other contents"
    seen = "" if all(batch.digest for batch in view.reference) else ", of those that were not left out"
    return f"the batch of step {view.pair.step} is none of the reference's{seen}"


def _samples(batch: Batch) -> str:
    """Name a batch's first samples, in parentheses; empty where they are not known."""
    return some([f"sample {number}" for number in batch.samples])

"""Several optimizers and ranks; records that are not there, or not where they are usually."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec.structs import replace

from chaos.diagnosis import diagnose
from chaos.model import Component, Diagnosis, Manner, StepRecord

from . import losses
from .simulated import Lose, Run, Toy, Ways, resumed, run

WAYS = Ways()
BATCHED = Ways(accumulation=4)


def reference_of(ways: Ways = WAYS) -> Run:
    """Return the uninterrupted run."""
    return run(Toy(ways=ways), 0, ways.total)


def said(found: tuple[int, Diagnosis] | None) -> list[tuple[Component, Manner]]:
    """Return what was named."""
    assert found is not None
    return [(one.component, one.manner) for one in found[1].lost]


def two(first: Run, second: Run) -> tuple[StepRecord, ...]:
    """Let two optimizers, or ranks, step in turn."""
    return tuple(chain.from_iterable(zip(first.records, second.records, strict=True)))


def pair_of_toys(
    at: int, first: Sequence[Lose], second: Sequence[Lose], *, ranks: bool
) -> tuple[tuple[StepRecord, ...], ...]:
    """Return the reference and a life of two optimizers of one rank, or of two ranks, each with its own losses."""
    names = [("Adam", 0), ("Adam", 1)] if ranks else [("Adam", 0), ("Adam#2", 0)]
    ways = [WAYS, Ways(seed=0 if ranks else 1)]
    known, lives = [], []
    for (optimizer, rank), way, loses in zip(names, ways, (first, second), strict=True):
        known.append(run(Toy(ways=way, optimizer=optimizer, rank=rank), 0, way.total))
        lives.append(resumed(known[-1], way, at, *loses))
    return two(*known), two(*lives)


def test_loss_of_one_optimizer_is_told_by_its_name() -> None:
    """All streams are aligned together, and the one that lags is named; intact ones are not."""
    reference, life = pair_of_toys(20, (), (), ranks=False)
    assert diagnose(reference, [life]) is None
    reference, life = pair_of_toys(20, (), (losses.optimizer_of(10), losses.weights_of(10)), ranks=False)
    found = diagnose(reference, [life])
    assert found is not None
    assert found[1].resumed_at == 20
    assert said(found) == [(Component.WEIGHTS, Manner.OTHER_STEP), (Component.OPTIMIZER, Manner.OTHER_STEP)]
    assert {one.optimizer for one in found[1].lost} == {"Adam#2"}


def test_losses_of_both_optimizers_are_told() -> None:
    """The second optimizer's loss shows in its own first step, after the first one's."""
    reference, life = pair_of_toys(20, (losses.no_optimizer,), (losses.no_optimizer,), ranks=False)
    found = diagnose(reference, [life])
    assert found is not None
    assert [(one.component, one.optimizer) for one in found[1].lost] == [
        (Component.OPTIMIZER, "Adam"),
        (Component.OPTIMIZER, "Adam#2"),
    ]


def test_loss_of_one_rank_is_told_by_its_number() -> None:
    """What all ranks lost is told once; gradients that another rank's data changed are no loss."""
    reference, life = pair_of_toys(20, (), (losses.moved_data(-3),), ranks=True)
    mixed = tuple(
        replace(record, components=record.components | {"gradients": f"mixed {number}"}) if record.rank == 0 else record
        for number, record in enumerate(life)
    )
    found = diagnose(reference, [mixed])
    assert found is not None
    assert [(one.component, one.rank, one.optimizer) for one in found[1].lost] == [(Component.DATA, 1, "")]
    reference, life = pair_of_toys(20, (losses.no_optimizer,), (losses.no_optimizer,), ranks=True)
    both = diagnose(reference, [life])
    assert said(both) == [(Component.OPTIMIZER, Manner.MISSING)]
    assert both is not None
    assert "in all 2 ranks" in both[1].lost[0].detail


def test_features_of_lost_weights_are_no_lost_data() -> None:
    """A second module's input follows from the first one's weights: only those are lost."""
    reference = reference_of()

    def with_features(records: Sequence[StepRecord]) -> list[StepRecord]:
        return [
            replace(
                record,
                batches=(*record.batches, record.components["weights"]),
                components=record.components | {"data": record.components["data"] + record.components["weights"]},
            )
            for record in records
        ]

    life = resumed(reference, WAYS, 20, losses.rounded_weights(losses.HALF)).records
    found = diagnose(with_features(reference.records), [with_features(life)])
    assert said(found) == [(Component.WEIGHTS, Manner.LOWER_PRECISION)]


def test_second_optimizer_without_batches_is_compared() -> None:
    """What steps behind another optimizer shows no batch of its own, in no life."""
    reference, life = pair_of_toys(20, (), (losses.zero_optimizer,), ranks=False)

    def behind(records: Sequence[StepRecord]) -> list[StepRecord]:
        return [_without_data(record) if record.optimizer == "Adam#2" else record for record in records]

    found = diagnose(behind(reference), [behind(life)])
    assert found is not None
    assert [(one.component, one.optimizer) for one in found[1].lost] == [(Component.OPTIMIZER, "Adam#2")]


def _without_data(record: StepRecord) -> StepRecord:
    """Show no batch."""
    kept = {name: one for name, one in record.components.items() if name != "data"}
    return replace(record, components=kept, batches=(), samples=())


def test_step_that_only_loads_is_no_step() -> None:
    """Loading may step once without a batch, to make the state that it then fills."""
    reference = reference_of()
    life = resumed(reference, WAYS, 20).records
    idle = _without_data(replace(life[0], components=life[0].components | {"weights": "?", "gradients": "?"}))
    later = [replace(record, ordinal=record.ordinal + 1) for record in life]
    assert diagnose(reference.records, [[idle, *later]]) is None
    broken = resumed(reference, WAYS, 20, losses.no_optimizer).records
    found = diagnose(reference.records, [[idle, *(replace(one, ordinal=one.ordinal + 1) for one in broken)]])
    assert said(found) == [(Component.OPTIMIZER, Manner.MISSING)]
    assert found is not None
    assert found[1].resumed_at == 20


def test_batches_inside_of_steps_show_in_the_next_record() -> None:
    """With a closure the first record of a life has no data yet, no gradients and no buffers: none is lost."""
    ways = Ways(has_adam=False)
    reference = reference_of(ways)

    def closed(records: Sequence[StepRecord]) -> list[StepRecord]:
        found = []
        for record, before in zip(records, [None, *records], strict=False):
            used = {
                name: one for name, one in record.components.items() if name not in ("data", "gradients", "buffers")
            }
            if before is not None:
                used |= {name: before.components[name] for name in ("data", "gradients", "buffers")}
            batches = () if before is None else before.batches
            samples = () if before is None else before.samples
            found.append(replace(record, components=used, batches=batches, samples=samples, details={}))
        return found

    known = closed(reference.records)
    assert diagnose(known, [closed(resumed(reference, ways, 20).records)]) is None
    found = diagnose(known, [closed(resumed(reference, ways, 20, losses.moved_data(-3)).records)])
    assert said(found) == [(Component.DATA, Manner.REPEATED)]


def test_steps_without_any_record_are_passed_over() -> None:
    """A budget leaves out steps, and some have no line at all: positions are those of the ordinals."""
    reference = reference_of()

    def thin(records: Sequence[StepRecord], every: int) -> list[StepRecord]:
        kept = []
        for number, record in enumerate(records):
            empty = StepRecord(ordinal=record.ordinal, optimizer=record.optimizer)
            if record.details or number % every == 0:
                kept.append(record)
            elif number % 3:
                kept.append(empty)
        return [*kept[:-1], records[-1]]

    known = thin(reference.records, 4)
    for at in (10, 20, 30):
        assert diagnose(known, [thin(resumed(reference, WAYS, at).records, 7)]) is None
        found = diagnose(known, [thin(resumed(reference, WAYS, at, losses.data_anew).records, 7)])
        assert said(found) == [(Component.DATA, Manner.REPEATED)]
        assert found is not None
        assert "the data began anew" in found[1].lost[0].detail


def test_life_that_begins_in_a_step_has_lost_nothing() -> None:
    """With the gradients of the first batches restored, the others are all that is left of the step."""
    reference = reference_of(BATCHED)
    toy = run(Toy(ways=BATCHED), 0, 20).saves[20]
    toy.forward_backward()
    reference.saves[20] = toy
    assert diagnose(reference.records, [resumed(reference, BATCHED, 20).records]) is None


def test_rate_of_a_new_optimizer_is_no_lost_schedule() -> None:
    """A new optimizer begins with its first rate, until the scheduler, which is right, sets the next one."""
    reference = reference_of()
    broken = list(resumed(reference, WAYS, 20, losses.no_optimizer).records)
    first = reference.records[0]
    broken[0] = replace(
        broken[0],
        components=broken[0].components | {"group.lr": first.components["group.lr"]},
        values=broken[0].values | {"group.lr": first.values["group.lr"]},
    )
    assert said(diagnose(reference.records, [broken])) == [(Component.OPTIMIZER, Manner.MISSING)]

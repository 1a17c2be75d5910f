"""The diagnosis of a lineage: the first life that is not the reference's, and what it had lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from chaos.diagnosis.alignment import Alignment, align
from chaos.diagnosis.causes import unexplained
from chaos.diagnosis.finding import plural
from chaos.diagnosis.generators import GENERATORS
from chaos.diagnosis.schedule import is_scheduled
from chaos.diagnosis.seam import Seam, compared, find_seam, overrun
from chaos.diagnosis.streams import NOT_COMPARED, Known, Track, known, tracked, without_idle
from chaos.model import Component, Diagnosis, LostState, StepRecord
from chaos.model.steps import BUFFERS, DATA, GRADIENTS, GROUP_PREFIX, STATE_PREFIX, WEIGHTS

_OF_THE_RANK = frozenset(
    {Component.DATA, Component.ACCUMULATION, Component.BUFFERS, Component.GRADIENTS, *GENERATORS.values()}
)
_ORDER = {component: number for number, component in enumerate(Component)}


def diagnose(
    reference: Sequence[StepRecord],
    lives: Sequence[Sequence[StepRecord]],
    *,
    expected: Sequence[int | None] = (),
    unsteady: frozenset[str] = frozenset(),
) -> tuple[int, Diagnosis] | None:
    """Return the position of the first life that is not the reference's, and its diagnosis (None: all lives are).

    `lives` are the records of a lineage's lives in order, each with the records of all its ranks and optimizers in
    order of time; a life without any is passed over. `expected[i]` is how many steps of the reference (of the optimizer
    that steps first in it) the newest whole checkpoint before life i was of, where that is known: it decides between
    readings that the records leave open. Components in `unsteady` are never compared.

    Steps in the result are those of the optimizer that a loss is of; `resumed_at` counts those of the optimizer that
    steps first. A life that silently began again at step 0, and is the reference's from there, has lost no state in
    this sense: it is passed over, and a later difference in it says in `doubts` that it went on from another step than
    expected. So does a life that goes on after the reference's last step, or one whose records are like nothing in the
    reference: these have a diagnosis with nothing in `lost`. Without a reference there is nothing to tell: None.
    """
    if not reference:
        return None
    reference_known = known(reference, unsteady)
    hints = [*expected, *[None] * len(lives)]
    for position, (records, hint) in enumerate(zip(lives, hints, strict=False)):
        if not records:
            continue
        found = _diagnose_life(
            tracked(without_idle(records, reference_known.track), unsteady), reference_known, hint, unsteady
        )
        if found is not None:
            return position, found
    return None


def _diagnose_life(life: Track, reference: Known, hint: int | None, unsteady: frozenset[str]) -> Diagnosis | None:
    """Return the diagnosis of one life (None: it is the reference's, all the way)."""
    alignment = align(life, reference, hint)
    if alignment is None:
        doubt = (
            "Nothing in the life's first step is like any step of the reference, so it cannot be told what was lost."
        )
        return Diagnosis(resumed_at=None, first_difference=None, doubts=(doubt,))
    seam = find_seam(life, reference, alignment)
    if seam is None:
        extra = overrun(life, reference, alignment)
        if not extra:
            return None
        doubt = f"It went on for {plural(extra, 'step')} after the last one of the reference that was recorded."
        return Diagnosis(resumed_at=alignment.steps, first_difference=None, doubts=(doubt,))
    pair = seam.mains[0]
    lost = _told(unexplained(seam), reference.track)
    named = {one.component for one in lost}
    return Diagnosis(
        resumed_at=alignment.steps,
        first_difference=pair.step,
        lost=lost,
        equal=tuple(name for name in _equal(seam) if name not in named),
        doubts=tuple(_doubts(seam, alignment, hint, unsteady)),
    )


def _told(found: Iterable[LostState], track: Track) -> tuple[LostState, ...]:
    """Return each loss once, in the order of components: one that all ranks share is told of the lowest of them."""
    has_optimizers = len({optimizer for _, optimizer in track.streams}) > 1
    groups: dict[tuple[object, ...], list[LostState]] = {}
    for one in sorted(found, key=lambda one: (_ORDER[one.component], one.optimizer, one.rank)):
        whose = one.optimizer if has_optimizers and one.component not in _OF_THE_RANK else ""
        groups.setdefault((one.component, one.manner, whose), []).append(replace(one, optimizer=whose))
    return tuple(_of_ranks(group, len(track.ranks)) for group in groups.values())


def _of_ranks(group: Sequence[LostState], num_ranks: int) -> LostState:
    """Return one loss for those of several ranks."""
    first = group[0]
    ranks = sorted({one.rank for one in group})
    if len(ranks) == 1:
        return first
    where = f"all {num_ranks} ranks" if len(ranks) == num_ranks else f"ranks {', '.join(map(str, ranks))}"
    return replace(first, detail=f"{first.detail} (in {where}; this is rank {first.rank}'s)")


def _equal(seam: Seam) -> tuple[str, ...]:
    """Return the names of what is the same in all records at the seam."""
    names = {name for pair in seam.pairs for name in compared(pair.life, pair.reference)}
    names -= {WEIGHTS} if seam.mains[0].reference.components.get(WEIGHTS) == NOT_COMPARED else set()
    differing = {component_of(name) for pair in seam.pairs for name in pair.differs}
    same = {component_of(name) for name in names} - differing
    return tuple(str(component) for component in Component if component in same)


def component_of(name: str) -> Component:
    """Return which part of the state a component of a record belongs to."""
    plain = {
        WEIGHTS: Component.WEIGHTS,
        GRADIENTS: Component.GRADIENTS,
        BUFFERS: Component.BUFFERS,
        DATA: Component.DATA,
    }
    if name in plain:
        return plain[name]
    if name in GENERATORS:
        return GENERATORS[name]
    if name.startswith(STATE_PREFIX):
        return Component.STEP_COUNTER if name == f"{STATE_PREFIX}step" else Component.OPTIMIZER
    is_setting = name.startswith(GROUP_PREFIX) and not is_scheduled(name)
    return Component.SETTINGS if is_setting else Component.SCHEDULER


def _doubts(seam: Seam, alignment: Alignment, hint: int | None, unsteady: frozenset[str]) -> Iterable[str]:
    """Yield sentences on what could not be seen."""
    pair = seam.mains[0]
    if alignment.is_guess:
        yield "Little in the life's first step is like any step of the reference: where it resumed is a guess."
    if hint is not None and hint != alignment.steps and len(seam.reference.track.streams) == 1:
        yield f"The newest whole checkpoint was of step {hint}, but its state is that of step {alignment.steps}."
    if not pair.is_digested:
        yield f"Step {pair.step} was digested in part only: weights, gradients and optimizer state were not compared."
    if pair.has_gap:
        yield (
            f"The step before step {pair.step} was digested in part only: the difference may have begun there "
            "(--probe-budget 100 leaves no step out)."
        )
    if pair.is_digested and WEIGHTS in pair.differs and not (pair.life.details and pair.reference.details):
        yield f"Of step {pair.step} there are no facts of each tensor, only digests of all."
    missing = [stream for stream in seam.life.streams if stream not in seam.reference.track.streams]
    if missing:
        names = ", ".join(f"{optimizer or 'an optimizer'} of rank {rank}" for rank, optimizer in missing)
        yield f"The reference has no steps of {names}."
    if unsteady:
        yield f"Not compared, since two runs without any fault differ in it: {', '.join(sorted(unsteady))}."

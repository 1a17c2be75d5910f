"""Any one loss, or any two, planted at any save of references of any length, are named, and nothing else is."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.diagnosis import diagnose
from chaos.model import Component

from . import losses
from .simulated import EPOCH, Lose, Toy, Ways, resumed, run

C = Component
PLANTED: dict[Component, tuple[Lose, ...]] = {
    C.OPTIMIZER: (
        losses.no_optimizer,
        losses.zero_optimizer,
        losses.no_second_moment,
        losses.no_state_of_head,
        losses.rounded_optimizer(losses.BRAIN),
        losses.swapped_optimizer,
    ),
    C.SCHEDULER: (losses.schedule_at(0), losses.schedule_at(3)),
    C.SETTINGS: (losses.setting("weight_decay", 0.3),),
    C.RNG_TORCH: (losses.fresh_generator("torch"), losses.other_generator("torch")),
    C.RNG_NUMPY: (losses.fresh_generator("numpy"), losses.other_generator("numpy")),
    C.RNG_RANDOM: (losses.fresh_generator("random"),),
    C.WEIGHTS: (
        losses.rounded_weights(losses.BRAIN),
        losses.rounded_weights(losses.HALF),
        losses.head_as_at_start,
        losses.noisy_weights,
        losses.weights_of(0),
    ),
    C.DATA: (losses.moved_data(-2), losses.moved_data(2)),  # whole steps of two batches, or of one
    C.BUFFERS: (losses.no_buffers,),
}


@st.composite
def planted(draw: st.DrawFn) -> tuple[Ways, int, int, dict[Component, Lose]]:
    """Draw a way of training, how often it saves, at which save it resumes, and at most two losses."""
    every = draw(st.integers(min_value=4, max_value=9))
    total = draw(st.integers(min_value=3 * every, max_value=40))
    at = every * draw(st.integers(min_value=1, max_value=total // every - 1))
    ways = Ways(
        total=total,
        seed=draw(st.integers(min_value=0, max_value=99)),
        accumulation=draw(st.integers(min_value=1, max_value=2)),
        shows_samples=draw(st.booleans()),
    )
    components = draw(st.lists(st.sampled_from(sorted(PLANTED)), max_size=2, unique=True))
    return ways, every, at, {component: draw(st.sampled_from(PLANTED[component])) for component in components}


@settings(max_examples=60, deadline=None)
@given(planted())
def test_any_losses_are_named(drawn: tuple[Ways, int, int, dict[Component, Lose]]) -> None:
    """The components named are those that were lost; none where nothing was; always the step after the save."""
    ways, every, at, loses = drawn
    reference = run(Toy(ways=ways), 0, ways.total, every)
    life = resumed(reference, ways, at, *loses.values(), save_every=every)
    found = diagnose(reference.records, [reference.records[: at + 2], life.records], expected=[None, at])
    if not loses:
        assert found is None
        return
    assert found is not None
    assert found[0] == 1
    assert (found[1].resumed_at, found[1].first_difference) == (at, at + 1)
    assert {one.component for one in found[1].lost} == set(loses), found[1]


@settings(max_examples=25, deadline=None)
@given(st.integers(min_value=1, max_value=3), st.integers(min_value=-EPOCH, max_value=EPOCH).filter(bool))
def test_distance_of_data_is_told(save: int, batches: int) -> None:
    """How many batches come again or are left out is counted."""
    ways = Ways()
    reference = run(Toy(ways=ways), 0, ways.total)
    at = max(10 * save, 10 * -(batches // 10))
    at = min(at, 30)
    if at + batches < 0 or at + batches >= ways.total:
        return
    life = resumed(reference, ways, at, losses.moved_data(batches))
    found = diagnose(reference.records, [life.records])
    assert found is not None
    loss = found[1].lost[0]
    assert loss.component is C.DATA
    assert f"the reference's of step {at + batches + 1} " in loss.detail

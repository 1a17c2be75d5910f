"""Which crash points are tried, and which one stands for a state that several lead to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.model import Address, FoundState, Phase
from chaos.planners.exhaustive import representatives, within_first_save, within_saves


def found(index: int, digest: str, *, save: int = 0, saves: int = 0, tear: int | None = None) -> FoundState:
    """Return a crash point of a life that has begun `saves` saves."""
    return FoundState(
        index=index,
        tear_offset=tear,
        digest=digest,
        address=Address(save=save, tick=0 if save else saves, call="write"),
        phase=Phase.SAVE if save else Phase.STEP,
        num_acknowledged=0,
        steps=0,
        first_step=None,
        last_step=None,
        saves=max(saves, save),
        is_change=True,
    )


LIFE = (
    found(0, "empty"),
    found(1, "empty", save=1),
    found(2, "half", save=1),
    found(2, "torn", save=1, tear=4096),
    found(3, "one", saves=1),
    found(4, "one", saves=1),
    found(5, "one", save=2),
    found(6, "two half", save=2),
    found(7, "two", saves=2),
)


@pytest.mark.parametrize(
    ("saves", "indices"),
    [
        ("all", [0, 1, 2, 2, 3, 4, 5, 6, 7]),
        ("first", [1, 2, 2, 3]),
        ("1", [1, 2, 2, 3]),
        ("last", [5, 6, 7]),
        ("2", [5, 6, 7]),
        ("3", []),
    ],
)
def test_the_points_of_a_save_and_the_first_one_after_it(saves: str, indices: list[int]) -> None:
    """The state that a whole save leaves belongs to it, too."""
    assert [state.index for state in within_saves(LIFE, saves)] == indices


def test_a_recovery_counts_to_the_end_of_its_first_save() -> None:
    """From the start of a life to the first point after its first save; where it never saves, to its end."""
    assert [state.index for state in within_first_save(LIFE)] == [0, 1, 2, 2, 3]
    assert [state.index for state in within_first_save(LIFE[:2])] == [0, 1]


def test_the_last_point_stands_for_a_state() -> None:
    """It is where most was acknowledged: what passes there passes at the points before."""
    chosen = {state.digest: state.index for state in representatives(LIFE)}
    assert chosen == {"empty": 1, "half": 2, "torn": 2, "one": 5, "two half": 6, "two": 7}


def test_tears_come_after_all_prefixes() -> None:
    """What a small budget covers are whole operations."""
    assert [state.tear_offset for state in representatives(LIFE)] == [None] * 5 + [4096]


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=120))
def test_every_state_is_tried_once(drawn: Sequence[tuple[int, bool]]) -> None:
    """However points and states lie, each state has exactly one representative, which has this state."""
    life = [found(i, str(digest), tear=4096 if torn else None) for i, (digest, torn) in enumerate(drawn)]
    chosen = representatives(life)
    assert sorted(state.digest for state in chosen) == sorted({state.digest for state in life})
    assert all(state in life for state in chosen)


def test_a_part_of_the_order_covers_the_whole_life() -> None:
    """The first sixteenth of the states is spread over the life."""
    life = [found(i, str(i)) for i in range(160)]
    first = [state.index for state in representatives(life)[:20]]
    assert first == [*range(0, 160, 16), *range(8, 160, 16)]

"""What must be equal between warm and fresh lives, and which trials are run twice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chaos.agreement import chosen_for_repetition, first_disagreement
from chaos.model import (
    Address,
    CrashPoint,
    FileRole,
    FileState,
    LifeEnd,
    LifeRecord,
    Outcome,
    Phase,
    Reference,
    SaveProfile,
    TargetProfile,
    Trial,
    TrialKind,
)

POINT = CrashPoint(address=Address(call="write"), expected_phase=Phase.STEP)
FINAL = FileState(path="f", key="f", role=FileRole.FINAL, size_bytes=1, is_whole=True, digest="d")
LIFE = LifeRecord(
    number=1, end=LifeEnd.EXITED, exit_status=0, steps=5, last_step=5, saves=1, crash_state=(FINAL,), state_digest="s"
)


def outcome(*lives: LifeRecord) -> Outcome:
    """Return a trial with these lives."""
    return Outcome(trial=Trial(number=7, kind=TrialKind.FAULTED), lives=lives)


def reference(*, deterministic: bool = True, has_several_writers: bool = False) -> Reference:
    """Return what the fresh references said."""
    profile = TargetProfile(saves=(SaveProfile(ordinal=1, ticks_before=1, has_several_writers=has_several_writers),))
    return Reference(outcomes=(), profile=profile, final=(FINAL,), deterministic=deterministic)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"exit_status": 1}, "its end"),
        ({"end": LifeEnd.DEADLINE, "exit_status": None}, "its end"),
        ({"steps": 4}, "the number of steps done"),
        ({"last_step": None}, "the last step shown"),
        ({"saves": 2}, "the number of saves"),
        ({"crash_state": (msgspec.structs.replace(FINAL, digest="e"),)}, "the digest of the final files"),
        ({"state_digest": "t"}, "the digest of the crash state"),
    ],
)
def test_each_difference_is_named(change: dict[str, Any], what: str) -> None:
    """The first thing that differs, in which life, and both values."""
    second = msgspec.structs.replace(LIFE, number=2)
    other = msgspec.structs.replace(second, **change)
    found = first_disagreement(outcome(LIFE, second), outcome(LIFE, other), reference())
    assert found is not None
    assert (found.life, found.what) == (2, what)
    assert str(found).startswith(f"warm and fresh lives disagree in trial 7, life 2: {what} is ")


def test_equal_outcomes_agree() -> None:
    """The same records, and times that differ, are no disagreement."""
    assert first_disagreement(outcome(LIFE), outcome(msgspec.structs.replace(LIFE, elapsed_s=9.0)), reference()) is None


def test_another_number_of_lives_is_a_disagreement() -> None:
    """A warm lineage that ended early did not do what the fresh one did."""
    found = first_disagreement(outcome(LIFE), outcome(LIFE, LIFE), reference())
    assert found is not None
    assert (found.what, found.warm, found.fresh, found.life) == ("the number of lives", "1", "2", 2)


@pytest.mark.parametrize("which", ["not deterministic", "several writers"])
def test_states_are_not_compared_where_they_may_differ(which: str) -> None:
    """A target with other bits in each run, or with threads that race in a save, has other crash states."""
    other = msgspec.structs.replace(LIFE, state_digest="t")
    known = reference(deterministic=which != "not deterministic", has_several_writers=which == "several writers")
    assert first_disagreement(outcome(LIFE), outcome(other), known) is None


@pytest.mark.parametrize(("num", "least"), [(0, 0), (1, 1), (6, 1), (19, 1), (20, 1), (40, 2), (205, 10)])
def test_one_trial_in_twenty_is_repeated(num: int, least: int) -> None:
    """At least one in twenty, at least one at all, the same ones for the same seed."""
    trials = [Trial(number=6 + i, kind=TrialKind.FAULTED, crash_points=(POINT,) * (1 + i % 4)) for i in range(num)]
    for seed in range(20):
        chosen = chosen_for_repetition(trials, seed=seed)
        assert least <= len(chosen) <= num // 20 + 1
        assert set(chosen) <= set(trials)
        assert chosen == chosen_for_repetition(trials, seed=seed)


def test_of_few_trials_a_short_one_is_repeated() -> None:
    """A fresh life costs seconds."""
    trials = [Trial(number=kills, kind=TrialKind.FAULTED, crash_points=(POINT,) * kills) for kills in (5, 1, 4)]
    assert [trial.number for trial in chosen_for_repetition(trials, seed=3)] == [1]

"""Nothing that a target starts outlives its life, and only our own SIGKILL counts as ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chaos.errors import HarnessError
from chaos.lives import intercepted
from chaos.model import Address, CrashPoint, LifeEnd, Phase

AT_STATE = CrashPoint(address=Address(save=1, file="state", incarnation=1, call="openat"), expected_phase=Phase.SAVE)


@pytest.mark.parametrize("is_polled", [False, True])
@pytest.mark.parametrize("how", ["daemon", "close_all", "ignore_signals", "execute_itself", "stopped", "many"])
def test_the_deadline_ends_every_process(
    lives: Callable[..., Any], processes_with: Callable[..., Any], how: str, *, is_polled: bool
) -> None:
    """A target that hangs is ended at its deadline, with all that it started in sessions of their own."""
    runner = lives("escape.py", how)
    record = runner.run(deadline_s=0.6, is_polled=is_polled).record
    assert record.end is LifeEnd.DEADLINE
    assert (runner.out / "ready").exists()
    assert processes_with(str(runner.out)) == []


def test_a_process_that_is_left_behind_is_named_and_ended(
    lives: Callable[..., Any], processes_with: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The root exits with 0 and leaves a daemon that only computes: an orphan, with its command line."""
    monkeypatch.setattr(intercepted, "ORPHAN_GRACE_S", 0.3)
    runner = lives("escape.py", "daemon_left")
    record = runner.run().record
    assert (record.end, record.exit_status) == (LifeEnd.EXITED, 0)
    assert len(record.orphans) == 1
    assert "escape.py" in record.orphans[0]
    assert processes_with(str(runner.out)) == []


def test_a_helper_that_ends_within_the_grace_is_no_orphan(lives: Callable[..., Any]) -> None:
    """A child that writes a last file after the root's end is waited for, and the life ends as soon as it has."""
    runner = lives("escape.py", "helper")
    record = runner.run().record
    assert (record.end, record.orphans, record.unseen_writers) == (LifeEnd.EXITED, (), ())
    assert (runner.out / "late").exists()
    assert record.elapsed_s < intercepted.ORPHAN_GRACE_S


def test_the_death_of_the_guardian_leaves_nobody(lives: Callable[..., Any], processes_with: Callable[..., Any]) -> None:
    """A guardian that is killed is an error of the harness, told as such, and the target is ended all the same."""
    runner = lives("escape.py", "kill_guardian")
    with pytest.raises(HarnessError, match="guardian"):
        runner.run()
    assert (runner.out / "ready").exists()
    assert processes_with(str(runner.out)) == []


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_root_that_ended_before_the_strike_is_no_landed_kill(lives: Callable[..., Any], how: str) -> None:
    """A child comes to the crash point when the root was killed by somebody else, or had ended: no evidence of ours."""
    runner = lives("escape.py", how, checkpoints=("state",))
    record = runner.run(point=AT_STATE).record
    assert record.end is LifeEnd.STRUCK
    assert not record.evidence.is_landed
    assert record.signal == (9 if how == "killed" else None)
    assert not (runner.out / "state").exists()


@pytest.mark.parametrize("is_polled", [False, True])
def test_a_kill_from_elsewhere_is_no_evidence(lives: Callable[..., Any], *, is_polled: bool) -> None:
    """A SIGKILL before the crash point, as for a lack of memory, ends the life without evidence."""
    runner = lives("escape.py", "end_itself", checkpoints=("state",))
    record = runner.run(point=AT_STATE, is_polled=is_polled).record
    assert (record.end, record.signal, record.evidence) == (LifeEnd.SIGNALLED, 9, None)
    assert record.interrupted_calls == 0

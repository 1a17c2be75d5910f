"""Lives without interception: kills land near their point, and the clock misses nothing that output tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaos.model import Address, CrashPoint, LifeEnd, Phase, TargetProfile

STEPS = TargetProfile(has_steps=True, total_steps=3000)


def test_all_output_is_read(lives: Callable[..., Any]) -> None:
    """Thousands of lines, and one longer than a look takes in, are all seen."""
    record = lives("chatter.py", "3000", "50", profile=STEPS).run(is_polled=True).record
    assert (record.end, record.exit_status, record.steps, record.last_step) == (LifeEnd.EXITED, 0, 3000, 3000)


def test_a_slow_target_is_hit(lives: Callable[..., Any]) -> None:
    """A target that waits after its first line is certainly hit there."""
    runner = lives("escape.py", "ignore_signals", checkpoints=("ready",))
    address = Address(save=1, file="ready", incarnation=1, call="openat")
    record = runner.run(point=CrashPoint(address=address, expected_phase=Phase.SAVE), is_polled=True).record
    assert record.end is LifeEnd.STRUCK
    assert record.evidence.is_landed
    assert record.evidence.processes_killed == 1

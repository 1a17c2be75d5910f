"""`resume_hung`: a life that was started again ends before its deadline."""

from __future__ import annotations

from chaos.checks.lineage import Restart, conclude, crash_point_before, describe, of_role, restarts
from chaos.model import CheckName, CheckResult, FileRole, LifeEnd, Outcome, Reference, Target, Violation


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look for later lives that the deadline ended, except where our holding of calls had interrupted some."""
    _ = reference, target
    judged = [
        restart
        for restart in restarts(outcomes)
        if not restart.life.interrupted_calls and restart.life.end is not LifeEnd.NOT_STARTED
    ]
    violations = (_violation(restart) for restart in judged if restart.life.end is LifeEnd.DEADLINE)
    return conclude(CheckName.RESUME_HUNG, len(judged), violations, "no life was started after another one")


def _violation(restart: Restart) -> Violation:
    life = restart.life
    progress = "before its first step" if not life.steps else f"after {life.steps} steps of its own"
    found = describe(of_role(restart.before.crash_state, FileRole.CHECKPOINT))
    return Violation(
        check=CheckName.RESUME_HUNG,
        trial=restart.trial,
        life=life.number,
        crash_point=crash_point_before(restart),
        step=life.last_step,
        detail=f"Life {life.number} was still running at its deadline, {life.elapsed_s:.0f} s after its start, "
        f"{progress}; checkpoints that it found: {found}.",
    )

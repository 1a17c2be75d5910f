"""`resume_crashed`: a life that was started again ends with exit status 0, not with an error or a signal of its own.

One that itself met an error may fail: that is the error coming to the surface. One whose only whole save was damaged at
rest may refuse to start.
"""

from __future__ import annotations

from chaos.checks.corruption import may_refuse
from chaos.checks.lineage import Restart, conclude, crash_point_before, describe, met_error, of_role, restarts
from chaos.checks.recency import order_of
from chaos.checks.wording import why_lost
from chaos.model import CheckName, CheckResult, FileRole, LifeEnd, LifeRecord, Outcome, Reference, Target, Violation

_LAST_LINES = 8


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look at how every later life ended; one whose calls were interrupted by our holding them is not judged."""
    _ = target
    order = order_of(reference)
    judged = [
        restart
        for restart in restarts(outcomes)
        if not restart.life.interrupted_calls
        and restart.life.end is not LifeEnd.NOT_STARTED
        and not met_error(restart.life)
    ]
    crashed = (restart for restart in judged if _has_crashed(restart.life))
    violations = (_violation(restart) for restart in crashed if not may_refuse(order, restart))
    return conclude(CheckName.RESUME_CRASHED, len(judged), violations, "no life was started after another one")


def _has_crashed(life: LifeRecord) -> bool:
    """Tell whether the life failed by itself; the signal of a kill with evidence is ours."""
    if life.end is LifeEnd.EXITED:
        return life.exit_status != 0
    return life.end is LifeEnd.SIGNALLED and not (life.evidence is not None and life.evidence.is_landed)


def _violation(restart: Restart) -> Violation:
    life = restart.life
    how = f"exit status {life.exit_status}" if life.end is LifeEnd.EXITED else f"signal {life.signal}"
    lines = [line for line in life.output_tail.splitlines() if line.strip()][-_LAST_LINES:]
    said = "\n".join(["its last lines:", *(f"  {line}" for line in lines)]) if lines else "it printed nothing"
    found = describe(of_role(restart.before.crash_state, FileRole.CHECKPOINT))
    why = why_lost(restart.before.evidence)
    return Violation(
        check=CheckName.RESUME_CRASHED,
        trial=restart.trial,
        life=life.number,
        crash_point=crash_point_before(restart),
        step=life.last_step,
        detail=f"Life {life.number} ended with {how}; checkpoints that it found: {found};{why} {said}",
    )

"""`resume_hung`: a life that was started again, or that met an error, ends before its deadline."""

from __future__ import annotations

from chaos.checks.lineage import (
    Restart,
    Strike,
    conclude,
    crash_point_before,
    describe,
    landed_strikes,
    met_error,
    of_role,
    restarts,
)
from chaos.checks.wording import the
from chaos.model import CheckName, CheckResult, FileRole, LifeEnd, LifeRecord, Outcome, Reference, Target, Violation


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look for such lives that the deadline ended, except where our holding of calls had interrupted some."""
    _ = reference, target
    later = [restart for restart in restarts(outcomes) if _can_be_judged(restart.life) and not met_error(restart.life)]
    erring = [strike for strike in landed_strikes(outcomes) if strike.fault.is_error and _can_be_judged(strike.life)]
    violations = [_violation(restart) for restart in later if restart.life.end is LifeEnd.DEADLINE]
    violations += [_violation_at_error(strike) for strike in erring if strike.life.end is LifeEnd.DEADLINE]
    reason = "no life was started after another one"
    return conclude(CheckName.RESUME_HUNG, len(later) + len(erring), violations, reason)


def _can_be_judged(life: LifeRecord) -> bool:
    """Tell whether a life ran, and none of its calls was interrupted by our holding it."""
    return not life.interrupted_calls and life.end is not LifeEnd.NOT_STARTED


def _violation_at_error(strike: Strike) -> Violation:
    life = strike.life
    return Violation(
        check=CheckName.RESUME_HUNG,
        trial=strike.trial,
        life=life.number,
        crash_point=strike.crash_point,
        step=life.last_step,
        detail=f"Life {life.number} met {the(strike.fault)} and was still running at its deadline, "
        f"{life.elapsed_s:.0f} s after its start.",
    )


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

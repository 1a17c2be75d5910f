"""`orphan_processes`: when a life ends by itself, no process of it goes on."""

from __future__ import annotations

from chaos.checks.lineage import conclude
from chaos.model import CheckName, CheckResult, CrashPoint, LifeEnd, LifeRecord, Outcome, Reference, Target, Violation


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look for processes that outlived their life's root by more than the grace."""
    _ = reference, target
    judged = 0
    violations = []
    for outcome in outcomes:
        crash_point = None
        for life in outcome.lives:
            judged += life.end in {LifeEnd.EXITED, LifeEnd.SIGNALLED}
            if life.orphans:
                violations.append(_violation(outcome, life, crash_point))
            if life.evidence is not None and life.evidence.is_landed:
                crash_point = life.evidence.crash_point
    return conclude(CheckName.ORPHAN_PROCESSES, judged, violations, "no life ended by itself")


def _violation(outcome: Outcome, life: LifeRecord, crash_point: CrashPoint | None) -> Violation:
    return Violation(
        check=CheckName.ORPHAN_PROCESSES,
        trial=outcome.trial.number,
        life=life.number,
        crash_point=crash_point,
        step=life.last_step,
        detail=f"Life {life.number} had ended, but {len(life.orphans)} of its processes went on: "
        f"{'; '.join(life.orphans)}.",
    )

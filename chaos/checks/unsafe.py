"""`unsafe_checkpoint`: every checkpoint can be read with `torch.load(weights_only=True)`."""

from __future__ import annotations

from chaos.checks.lineage import conclude
from chaos.model import CheckName, CheckResult, Outcome, Reference, Target, Violation


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Report the checkpoints of the reference that a safe reader refuses."""
    _ = outcomes, target
    refused = reference.unsafe
    violations = (_violation(reference, refused),) if refused else ()
    judged = 0 if refused is None else 1
    return conclude(
        CheckName.UNSAFE_CHECKPOINT, judged, violations, "no checkpoint is in a format that torch.load reads"
    )


def _violation(reference: Reference, refused: tuple[str, ...]) -> Violation:
    return Violation(
        check=CheckName.UNSAFE_CHECKPOINT,
        trial=reference.outcomes[0].trial.number if reference.outcomes else 0,
        detail=f"torch.load(weights_only=True) refuses to read {'; '.join(refused)}.",
    )

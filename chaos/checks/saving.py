"""`saving_changes_training`: a run that saves and one that does not save end with the same bits."""

from __future__ import annotations

from chaos.checks.lineage import conclude, counterpart
from chaos.model import CheckName, CheckResult, Outcome, Reference, Target, Violation


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Compare the final files of the run that did not save with the reference's."""
    _ = outcomes, target
    if reference.no_save_final is None:
        return _result(0, (), "the target has no command that trains without saving")
    if not reference.deterministic:
        return _result(0, (), "two uninterrupted runs of the target differ from each other already")
    found = [(wanted, counterpart(wanted, reference.no_save_final)) for wanted in reference.final]
    pairs = [(wanted, file) for wanted, file in found if file is not None]
    different = [
        f"{file.path} has digest {file.digest} without saving and {wanted.digest} with it"
        for wanted, file in pairs
        if file.digest != wanted.digest
    ]
    violations = (_violation(reference, different),) if different else ()
    return _result(len(pairs), violations, "the run without saves left no final file to compare")


def _result(judged: int, violations: tuple[Violation, ...], reason: str) -> CheckResult:
    return conclude(CheckName.SAVING_CHANGES_TRAINING, judged, violations, reason)


def _violation(reference: Reference, different: list[str]) -> Violation:
    return Violation(
        check=CheckName.SAVING_CHANGES_TRAINING,
        trial=reference.outcomes[0].trial.number if reference.outcomes else 0,
        detail=f"To save changes what is trained, without any kill: {'; '.join(different)}.",
    )

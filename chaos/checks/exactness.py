"""`silent_divergence`: a lineage that was interrupted ends with the same bits as the run that was not.

Of one that ignored an error, or went on from damaged bytes, other rules tell. A recovery that was stopped early has
the bits that its twin ended with: they count against it, and prove nothing for it.
"""

from __future__ import annotations

from chaos.checks.corruption import is_accepted
from chaos.checks.ignored import is_told_of_end
from chaos.checks.lineage import (
    conclude,
    counterpart,
    is_completed,
    is_stopped,
    landed_strikes,
    last_crash_point,
    last_strike,
)
from chaos.checks.recency import order_of
from chaos.checks.wording import counted, why_lost
from chaos.model import CheckName, CheckResult, FileState, Outcome, Reference, Target, TensorDifference, Violation


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Compare the final files' digests of every lineage that ended with exit status 0 with the reference's.

    Missing and damaged final files are left to `did_not_finish`.
    """
    _ = target
    if not reference.deterministic:
        names = ", ".join(reference.differing_tensors) or "their final files"
        reason = f"two uninterrupted runs of the target differ from each other, in {names}"
        return conclude(CheckName.SILENT_DIVERGENCE, 0, (), reason)
    order = order_of(reference)
    ended = [outcome for outcome in outcomes if is_completed(outcome) or is_stopped(outcome)]
    pairs = [(outcome, _pairs(reference, outcome)) for outcome in ended]
    violations = []
    for outcome, files in pairs:
        different = [(wanted, found) for wanted, found in files if wanted.digest != found.digest]
        is_told = is_told_of_end(reference, order, outcome) or is_accepted(reference, order, outcome)
        if different and not is_told:
            violations.append(_violation(outcome, different))
    interrupted = [f for outcome, f in pairs if any(landed_strikes((outcome,))) and not is_stopped(outcome)]
    reason = "no interrupted lineage ended with exit status 0 and left a final file to compare"
    return conclude(CheckName.SILENT_DIVERGENCE, sum(map(len, interrupted)), violations, reason)


def _pairs(reference: Reference, outcome: Outcome) -> list[tuple[FileState, FileState]]:
    """Return the final files that can be compared, the reference's first in each pair."""
    state = outcome.lives[-1].crash_state
    found = [(wanted, counterpart(wanted, state)) for wanted in reference.final]
    return [(wanted, file) for wanted, file in found if file is not None and file.is_whole is not False]


def _measured(difference: TensorDifference | None) -> str:
    """Say how large a measured difference is (None: it was not measured; nothing is said then)."""
    if difference is None:
        return ""
    if not difference.tensors_differing:
        others = (*difference.leaves_differing, *difference.only_left, *difference.only_right)
        return f" ({len(others)} values differ, the first is {others[0]})" if others else ""
    return (
        f" ({difference.tensors_differing:,} of {difference.tensors:,} tensors differ, the first is "
        f"{difference.first_name}; {difference.elements_differing:,} of {difference.elements:,} numbers differ, by at "
        f"most {difference.largest_absolute:.3g}, which is {difference.largest_ulp:,} ulp)"
    )


def _violation(outcome: Outcome, different: list[tuple[FileState, FileState]]) -> Violation:
    life = outcome.lives[-1]
    files = "; ".join(
        f"{found.path} ({found.size_bytes:,} bytes) has digest {found.digest}, that of the reference {wanted.digest}"
        f"{_measured(outcome.differences.get(found.key))}"
        for wanted, found in different
    )
    kills = [f"life {strike.life.number} {strike.crash_point}" for strike in landed_strikes((outcome,))]
    after = f"after {counted(len(kills), outcome.trial.fault)}: {'; '.join(kills)};" if kills else "without any kill,"
    last = last_strike(outcome)
    why = "" if last is None else why_lost(last.life.evidence)
    ended = "ended with exit status 0"
    if is_stopped(outcome):
        ended = f"was stopped early, beside trial {outcome.twin}, which ended with exit status 0"
    began = f"; its last life began at step {life.first_step}" if life.first_step is not None and kills else ""
    return Violation(
        check=CheckName.SILENT_DIVERGENCE,
        trial=outcome.trial.number,
        life=life.number,
        crash_point=last_crash_point(outcome),
        step=life.first_step if kills else None,
        detail=f"The lineage {ended} {after} but with other bits: {files}{began}.{why}",
    )

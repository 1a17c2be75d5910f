"""`did_not_finish`: a lineage that ends with exit status 0 has done its last step and left every final file.

Of one whose last life ignored an error, `failed_save_ignored` tells.
"""

from __future__ import annotations

from chaos.checks.ignored import files_missing, is_told_of_end
from chaos.checks.lineage import (
    conclude,
    counterpart,
    is_completed,
    last_crash_point,
    of_role,
    whole_checkpoints,
)
from chaos.checks.recency import SaveOrder, order_of
from chaos.model import CheckName, CheckResult, FileRole, Outcome, Reference, Target, Violation


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look at the last step and the final files of every lineage that ended with exit status 0, the control too."""
    _ = target
    order = order_of(reference)
    completed = [outcome for outcome in outcomes if is_completed(outcome)]
    violations = []
    for outcome in completed:
        if is_told_of_end(reference, order, outcome):
            continue
        files = files_missing(reference, outcome.lives[-1].crash_state)
        faults = [fault for fault in (_steps_missing(reference, order, outcome), files) if fault]
        if faults:
            violations.append(_violation(outcome, "; ".join(faults)))
    return conclude(CheckName.DID_NOT_FINISH, len(completed), violations, "no lineage ended with exit status 0")


def _steps_missing(reference: Reference, order: SaveOrder, outcome: Outcome) -> str:
    """Return what the lineage lacks to the last step; empty when nothing, or nothing can be told."""
    profile, life = reference.profile, outcome.lives[-1]
    if profile.last_step is None or not _is_line_for_every_step(reference):
        return _ticks_missing(reference, order, outcome)
    if life.last_step is not None and life.last_step >= profile.last_step:
        return ""
    if life.last_step is None and _found_last_save(reference, order, outcome):
        return ""
    if not _is_count_known(reference, order, outcome) and _has_expected_bits(reference, outcome):
        return ""
    reached = life.last_step
    if reached is None:
        reached = max((other.last_step for other in outcome.lives if other.last_step is not None), default=None)
    if reached is not None and reached >= profile.last_step:
        return ""
    shown = "no step" if reached is None else f"step {reached}"
    return f"the last step shown is {shown}, that of the reference is step {profile.last_step}"


def _is_line_for_every_step(reference: Reference) -> bool:
    """Tell whether the reference's step lines go through all numbers, so that its last number must be seen again."""
    first = reference.outcomes[0].lives[0].first_step if reference.outcomes and reference.outcomes[0].lives else None
    last, total = reference.profile.last_step, reference.profile.total_steps
    if not reference.profile.uses_ticks or first is None or last is None:
        return True
    return (last - first) % max(total - 1, 1) == 0


def _found_last_save(reference: Reference, order: SaveOrder, outcome: Outcome) -> bool:
    """Tell whether the last life found the reference's last save whole, so that no step was left to do."""
    if len(outcome.lives) < 2 or not order.saves:  # noqa: PLR2004 - two lives: the last, and the one before it
        return False
    newest = order.newest_save(outcome.lives[-2].crash_state)
    if newest is None or newest.ordinal != order.saves[-1].ordinal:
        return False
    return newest.ticks_before is None or newest.ticks_before >= reference.profile.total_steps


def _ticks_missing(reference: Reference, order: SaveOrder, outcome: Outcome) -> str:
    """Do the sum without numbers in step lines: steps in the checkpoint that was found plus the last life's own."""
    profile, life = reference.profile, outcome.lives[-1]
    position = _resumed_position(order, outcome)
    if position is None or not _is_counting(reference, outcome) or position + life.steps >= profile.total_steps:
        return ""
    return f"the last life did {life.steps} steps from step {position} on, the reference does {profile.total_steps}"


def _is_counting(reference: Reference, outcome: Outcome) -> bool:
    """Tell whether the last life's own steps were counted by the reference's clock."""
    profile = reference.profile
    return profile.has_steps and (outcome.lives[-1].has_probe or not profile.uses_ticks)


def _is_count_known(reference: Reference, order: SaveOrder, outcome: Outcome) -> bool:
    """Tell whether the step at which the lineage ended can be worked out without the numbers in its lines."""
    return _is_counting(reference, outcome) and _resumed_position(order, outcome) is not None


def _has_expected_bits(reference: Reference, outcome: Outcome) -> bool:
    """Tell whether every final file is the reference's, bit for bit, of a target that gives the same bits each time."""
    state = outcome.lives[-1].crash_state
    pairs = [(wanted, counterpart(wanted, state)) for wanted in reference.final]
    are_equal = all(found is not None and found.is_whole and found.digest == wanted.digest for wanted, found in pairs)
    return reference.deterministic and bool(pairs) and are_equal


def _resumed_position(order: SaveOrder, outcome: Outcome) -> int | None:
    """Return the steps in the newest checkpoint that the last life found (None: unknown)."""
    if len(outcome.lives) == 1:
        return 0
    state = outcome.lives[-2].crash_state
    if any(order.rank(file.digest) is None for file in whole_checkpoints(state)):
        return None
    newest = order.newest_save(state)
    if newest is not None:
        return newest.ticks_before
    return None if of_role(state, FileRole.CHECKPOINT) else 0


def _violation(outcome: Outcome, fault: str) -> Violation:
    life = outcome.lives[-1]
    return Violation(
        check=CheckName.DID_NOT_FINISH,
        trial=outcome.trial.number,
        life=life.number,
        crash_point=last_crash_point(outcome),
        step=life.last_step,
        detail=f"The last life ended with exit status 0, but {fault}.",
    )

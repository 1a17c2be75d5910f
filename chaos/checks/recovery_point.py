"""`lost_work`: a life that was started again resumes from the newest whole checkpoint, not an older one or step 0."""

from __future__ import annotations

from chaos.checks.lineage import (
    Restart,
    conclude,
    crash_point_before,
    describe,
    folders_begun_anew,
    of_role,
    restarts,
    whole_checkpoints,
)
from chaos.checks.recency import KnownSave, order_of
from chaos.model import (
    CheckName,
    CheckResult,
    FileRole,
    LifeEnd,
    Outcome,
    Reference,
    Target,
    TargetProfile,
    Violation,
)


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Compare where every later life began with the newest whole checkpoint that it found."""
    _ = target
    order = order_of(reference)
    judged = 0
    violations = []
    for restart in restarts(outcomes):
        if folders_begun_anew(restart):  # a doubt, not a finding: where it looks for checkpoints is not known
            continue
        newest = order.newest_save(restart.before.crash_state)
        if newest is None:
            has_lost = _is_from_zero(reference, restart)
        else:
            has_lost = _is_from_older(reference.profile, restart, newest, order.older_than(newest))
            if not reference.profile.has_steps and len(order.saves) != len(reference.profile.saves):
                has_lost = None  # saves without new content: their number says nothing
        judged += has_lost is not None
        if has_lost:
            violations.append(_violation(restart, newest))
    reason = "no later life both showed its steps and had a checkpoint, known from the reference, to resume from"
    return conclude(CheckName.LOST_WORK, judged, violations, reason)


def _is_from_older(profile: TargetProfile, restart: Restart, newest: KnownSave, older: KnownSave) -> bool | None:
    """Tell whether the life began where one that resumed from `older` would (None: it shows nothing to tell by).

    A life may take a step or two in no training (some loaders step an optimizer once to make its state), so its steps
    must reach back to the older save; and a first line with the right number clears it.
    """
    life = restart.life
    if not profile.has_steps:
        return _saves_reach_back(profile, restart, older)
    if _counts_all_steps(profile, restart) and newest.ticks_before is not None and older.ticks_before is not None:
        reaches_back = profile.total_steps - life.steps <= older.ticks_before
        return reaches_back and not _shows_right_number(life.first_step, newest.next_step)
    if life.first_step is None or newest.next_step is None or older.next_step is None:
        return None
    # "resumed at step 30" is a step line to many patterns, and names the step before the first of this life.
    return life.first_step <= min(older.next_step, newest.next_step - 2)


def _saves_reach_back(profile: TargetProfile, restart: Restart, older: KnownSave) -> bool | None:
    """Tell by its saves alone whether a life began at `older` or before (None: it did not run to its end)."""
    life = restart.life
    if life.end is not LifeEnd.EXITED or life.exit_status != 0 or not profile.saves:
        return None
    return len(profile.saves) - life.saves <= older.ordinal


def _shows_right_number(first_step: int | None, next_step: int | None) -> bool:
    """Tell whether the life's first step line has a number that only a life resumed from the newest save shows."""
    return first_step is not None and next_step is not None and first_step >= next_step


def _is_from_zero(reference: Reference, restart: Restart) -> bool | None:
    """Tell whether the life began at 0 with no whole checkpoint left, though one had been acknowledged."""
    checkpoints = of_role(restart.before.crash_state, FileRole.CHECKPOINT)
    is_unknown = whole_checkpoints(checkpoints) or any(file.is_whole is None for file in checkpoints)
    if is_unknown or not restart.acknowledged:
        return None
    first = reference.outcomes[0].lives[0].first_step if reference.outcomes and reference.outcomes[0].lives else None
    if restart.life.first_step is not None and first is not None:
        return restart.life.first_step <= first
    if _counts_all_steps(reference.profile, restart):
        return restart.life.steps >= reference.profile.total_steps
    return None


def _counts_all_steps(profile: TargetProfile, restart: Restart) -> bool:
    """Tell whether the count of steps says where the life began: exact clock, and it ran to the end of the training."""
    life = restart.life
    is_completed = life.end is LifeEnd.EXITED and life.exit_status == 0
    is_same_clock = life.has_probe if profile.uses_ticks else life.first_step is None
    return is_completed and is_same_clock and profile.total_steps > 0 and profile.has_steps


def _violation(restart: Restart, newest: KnownSave | None) -> Violation:
    life = restart.life
    began = f"did {life.steps} steps" if life.steps else f"did {life.saves} saves"
    began = f"began at step {life.first_step}" if life.first_step is not None else began
    if newest is None:
        had = "started again from 0 without a word, although a save had been acknowledged and no whole one was left"
    else:
        number = newest.step if newest.step is not None else newest.ticks_before
        had = f"did not use the newest whole checkpoint, save {newest.ordinal} of the reference (step {number})"
    found = describe(of_role(restart.before.crash_state, FileRole.CHECKPOINT))
    return Violation(
        check=CheckName.LOST_WORK,
        trial=restart.trial,
        life=life.number,
        crash_point=crash_point_before(restart),
        step=life.first_step,
        detail=f"Life {life.number} {began}: it {had}; checkpoints that it found: {found}.",
    )

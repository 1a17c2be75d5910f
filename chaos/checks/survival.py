"""`no_valid_checkpoint`: once a save was acknowledged, every later kill leaves at least one whole checkpoint."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.checks.lineage import Kill, conclude, describe, landed_kills, of_role, whole_checkpoints
from chaos.model import CheckName, CheckResult, FileRole, Outcome, Reference, Target, Violation


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look for a whole checkpoint in the crash state of every kill that came after an acknowledgement."""
    _ = target
    kills = [kill for kill in landed_kills(outcomes) if kill.acknowledged]
    never = _never_whole(reference)
    judged = [kill for kill in kills if _can_be_judged(kill, never)]
    reason = (
        "nobody can tell whether the checkpoints left by the kills are whole"
        if kills
        else "no kill came after an acknowledged save"
    )
    return conclude(
        CheckName.NO_VALID_CHECKPOINT,
        len(judged),
        (_violation(kill) for kill in judged if not whole_checkpoints(kill.life.crash_state)),
        reason,
    )


def unjudged_kills(reference: Reference, outcomes: Iterable[Outcome]) -> tuple[Kill, ...]:
    """Return the kills after an acknowledgement that left checkpoints of which nobody can tell whether one is whole."""
    never = _never_whole(reference)
    return tuple(kill for kill in landed_kills(outcomes) if kill.acknowledged and not _can_be_judged(kill, never))


def _can_be_judged(kill: Kill, never_whole: frozenset[str]) -> bool:
    """Tell whether the state says anything: no checkpoint at all does, only files that nobody can judge do not."""
    checkpoints = of_role(kill.life.crash_state, FileRole.CHECKPOINT)
    return not checkpoints or any(
        file.is_whole or (file.is_whole is False and file.key not in never_whole) for file in checkpoints
    )


def _never_whole(reference: Reference) -> frozenset[str]:
    """Return the keys of checkpoints that look damaged, and never whole, in the run that was not killed.

    They are in a format that is taken for another one: what they look like after a kill says nothing.
    """
    lives = reference.outcomes[0].lives if reference.outcomes else ()
    states = [state for life in lives for state in (*(item.files for item in life.acknowledgements), life.crash_state)]
    files = [file for state in states for file in of_role(state, FileRole.CHECKPOINT)]
    whole = {file.key for file in files if file.is_whole}
    return frozenset(file.key for file in files if file.is_whole is False) - whole


def _violation(kill: Kill) -> Violation:
    last = kill.acknowledged[-1]
    said = f"step {last.step}" if last.step is not None else f"save {last.save}"
    checkpoints = of_role(kill.life.crash_state, FileRole.CHECKPOINT)
    left = f"what is left: {describe(checkpoints)}" if checkpoints else "no checkpoint file is left at all"
    return Violation(
        check=CheckName.NO_VALID_CHECKPOINT,
        trial=kill.trial,
        life=kill.life.number,
        crash_point=kill.crash_point,
        step=kill.life.last_step,
        detail=f"The target had acknowledged {said}, yet no whole checkpoint survived the kill; {left}; "
        f"when that save was acknowledged there was: {describe(last.files)}.",
    )

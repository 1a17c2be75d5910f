"""`no_valid_checkpoint`: once a save was acknowledged, every later fault leaves at least one whole checkpoint.

What is left when a killed life is over, or one that met an error has ended. A checkpoint that the fault itself damaged
(`bit_flip`) says nothing about the target.
"""

from __future__ import annotations

from collections.abc import Iterable

from chaos.checks.lineage import Strike, conclude, describe, landed_strikes, of_role, whole_checkpoints
from chaos.checks.wording import the, why_lost
from chaos.model import CheckName, CheckResult, FaultKind, FileRole, Outcome, Reference, Target, Violation


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look for a whole checkpoint in the crash state of every fault that came after an acknowledgement."""
    _ = target
    strikes = _strikes(outcomes)
    never = _never_whole(reference)
    judged = [strike for strike in strikes if _can_be_judged(strike, never)]
    reason = (
        "nobody can tell whether the checkpoints left by the kills are whole"
        if strikes
        else "no kill came after an acknowledged save"
    )
    violations = (_violation(strike) for strike in judged if is_nothing_left(strike))
    return conclude(CheckName.NO_VALID_CHECKPOINT, len(judged), violations, reason)


def is_nothing_left(strike: Strike) -> bool:
    """Tell whether a save was acknowledged, and yet no whole checkpoint is there."""
    return bool(strike.acknowledged) and not whole_checkpoints(strike.life.crash_state)


def _strikes(outcomes: Iterable[Outcome]) -> list[Strike]:
    """Return the faults that came after an acknowledgement, and did not damage what it was of."""
    return [s for s in landed_strikes(outcomes) if s.acknowledged and s.fault is not FaultKind.BIT_FLIP]


def unjudged_strikes(reference: Reference, outcomes: Iterable[Outcome]) -> tuple[Strike, ...]:
    """Return the faults after an acknowledgement of which nobody can tell whether they left a whole checkpoint."""
    never = _never_whole(reference)
    return tuple(strike for strike in _strikes(outcomes) if not _can_be_judged(strike, never))


def _can_be_judged(strike: Strike, never_whole: frozenset[str]) -> bool:
    """Tell whether the state says anything: no checkpoint at all does, only files that nobody can judge do not."""
    checkpoints = of_role(strike.life.crash_state, FileRole.CHECKPOINT)
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


def _violation(strike: Strike) -> Violation:
    last, life = strike.acknowledged[-1], strike.life
    said = f"step {last.step}" if last.step is not None else f"save {last.save}"
    checkpoints = of_role(life.crash_state, FileRole.CHECKPOINT)
    left = f"what is left: {describe(checkpoints)}" if checkpoints else "no checkpoint file is left at all"
    return Violation(
        check=CheckName.NO_VALID_CHECKPOINT,
        trial=strike.trial,
        life=life.number,
        crash_point=strike.crash_point,
        step=life.last_step,
        detail=f"The target had acknowledged {said}, yet no whole checkpoint survived {the(strike.fault)}; {left}; "
        f"when that save was acknowledged there was: {describe(last.files)}.{why_lost(life.evidence)}",
    )

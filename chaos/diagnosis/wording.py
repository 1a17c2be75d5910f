"""A diagnosis in sentences, for a report."""

from __future__ import annotations

from chaos.model import Component, Diagnosis, LostState


def in_words(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return sentences: where it resumed, what was lost, the first different update, what is equal, doubts."""
    who = f"Life {diagnosis.life}" if diagnosis.life else "It"
    found = [] if diagnosis.resumed_at is None else [_resumed(who, diagnosis.resumed_at)]
    found += [_lost(one) for one in diagnosis.lost]
    if diagnosis.first_difference is not None:
        found.append(f"First different update: step {diagnosis.first_difference}.")
    if diagnosis.equal:
        found.append(f"The same as the reference's there: {', '.join(diagnosis.equal)}.")
    return (*found, *diagnosis.doubts)


def _resumed(who: str, step: int) -> str:
    """Say which step's state a life went on with."""
    return f"{who} resumed with the state of step {step}." if step else f"{who} began with the state of the start."


def _lost(one: LostState) -> str:
    """Say what was lost, and whose it was where there are several."""
    whose = "" if not one.optimizer else f" of {one.optimizer}"
    if one.rank:
        whose += f" of rank {one.rank}" if one.component is not Component.DATA else f" on rank {one.rank}"
    return f"Lost: {one.component}{whose} ({one.manner}): {one.detail}."

"""Do warm and fresh lives agree? Some trials of a warm campaign are run again with fresh lives; pure over outcomes.

A disagreement is a fault of the harness (or something that warm lives hide), never a finding about the target.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from chaos.model import FileRole, LifeRecord, Outcome, Phase, Record, Reference, Trial

ONE_IN: Final = 20


class Disagreement(Record, kw_only=True):
    """The first thing in which a trial's fresh repetition is not as its warm run."""

    trial: int
    life: int
    what: str
    warm: str
    fresh: str

    def __str__(self) -> str:
        """Return it as a sentence."""
        return (
            f"warm and fresh lives disagree in trial {self.trial}, life {self.life}: "
            f"{self.what} is {self.warm} warm and {self.fresh} fresh"
        )


def chosen_for_repetition(trials: Sequence[Trial], *, seed: int) -> tuple[Trial, ...]:
    """Choose one trial in twenty, at least one if there are any: of fewer than twenty, the one with the fewest lives.

    A fresh life costs seconds; which of several equally short trials is repeated depends on the seed. One that is only
    killed before its first step resumes from nothing, and shows little.
    """
    if not trials:
        return ()
    trials = [trial for trial in trials if _comes_to_a_step(trial)] or trials
    rng = random.Random(f"{seed}:repetition:{trials[0].number}")
    if len(trials) < ONE_IN:
        fewest = min(len(trial.crash_points) for trial in trials)
        return (rng.choice([trial for trial in trials if len(trial.crash_points) == fewest]),)
    return tuple(trials[rng.randrange(ONE_IN) :: ONE_IN]) or (rng.choice(trials),)


def _comes_to_a_step(trial: Trial) -> bool:
    """Tell whether a trial is killed anywhere but at its very start."""
    return any(point.expected_phase is not Phase.STARTUP for point in trial.crash_points)


def first_disagreement(warm: Outcome, fresh: Outcome, reference: Reference) -> Disagreement | None:
    """Compare two runs of one trial; bits only where the target is deterministic by its (fresh) references.

    Where several threads write a save, their order and so the crash states may differ: ends, steps and final bits are
    compared there.
    """
    number = warm.trial.number
    if len(warm.lives) != len(fresh.lives):
        lives = min(len(warm.lives), len(fresh.lives))
        return Disagreement(
            trial=number,
            life=lives + 1,
            what="the number of lives",
            warm=str(len(warm.lives)),
            fresh=str(len(fresh.lives)),
        )
    is_ordered = not any(save.has_several_writers for save in reference.profile.saves)
    for life, other in zip(warm.lives, fresh.lives, strict=True):
        facts, others = _facts(life, reference, with_state=is_ordered), _facts(other, reference, with_state=is_ordered)
        for what, fact in facts.items():
            if fact != others[what]:
                return Disagreement(trial=number, life=life.number, what=what, warm=fact, fresh=others[what])
    return None


def _facts(life: LifeRecord, reference: Reference, *, with_state: bool) -> dict[str, str]:
    """Return what must be equal, by what it is called."""
    facts = {
        "its end": f"{life.end} ({life.exit_status if life.signal is None else f'signal {life.signal}'})",
        "whether the kill landed": str(life.evidence is not None and life.evidence.is_landed),
        "the number of steps done": str(life.steps),
        "the last step shown": str(life.last_step),
        "the number of saves": str(life.saves),
    }
    if reference.deterministic:
        final = sorted((state.key, state.digest) for state in life.crash_state if state.role is FileRole.FINAL)
        facts["the digest of the final files"] = " ".join(digest for _, digest in final) or "none"
        if with_state:
            facts["the digest of the crash state"] = life.state_digest
    return facts

"""When a recovery may be stopped before its end: only beside a twin that ran to its own end; pure.

The twin began from the same visible files, byte for byte, and each step so far has the twin's digest of everything that
training depends on. A recovery that agrees with the reference alone is not stopped: a training that skips data in later
epochs agrees with it for all steps of its first one.

A lineage whose last life was stopped is counted apart: nothing that it did not show itself counts for it. Against it
counts what its twin ended with: the same bits would have come of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from chaos.model import FaultKind, FileRole, FinishedRecovery, LifeEnd, LifeRecord, Outcome, Reference, TrialKind

LEAST_STEPS: Final = 2
# So many are kept and handed out: a recovery that does not agree in its first steps is not stopped later either.
MOST_STEPS: Final = 16
_MOST_TWINS: Final = 512
_GENERATOR: Final = "rng."
CAN_BE_TWINS: Final = frozenset({TrialKind.FAULTED, TrialKind.EXPLORED})

_End = tuple[LifeEnd, int | None, tuple[str, ...], tuple[tuple[str, str], ...]]


def may_stop(twin: FinishedRecovery | None, files: str, steps: Sequence[str]) -> bool:
    """Tell whether a recovery from `files` (a digest) that has done `steps` (a digest each) will end as its twin did.

    A step without a digest (an empty text) is one that nobody can compare: then it may not be stopped.
    """
    if twin is None or not files or twin.files != files:
        return False
    if not LEAST_STEPS <= len(steps) < len(twin.steps) or not all(steps):
        return False
    return tuple(steps) == twin.steps[: len(steps)]


def is_all_seen(lives: Iterable[LifeRecord]) -> bool:
    """Tell whether all that the lives left is in the output folder: what lies elsewhere is in no digest of files."""
    return not any(life.outside_writes or life.unseen_writers or life.foreign_calls for life in lives)


def has_acknowledged(lives: Iterable[LifeRecord]) -> bool:
    """Tell whether any of the lives had acknowledged a save: without one, a life may begin from 0."""
    return any(life.acknowledgements for life in lives)


def are_steps_comparable(reference: Reference) -> bool:
    """Tell whether two runs of the target agreed in all but generators that nobody seeded, which nothing depends on."""
    return reference.deterministic and all(name.startswith(_GENERATOR) for name in reference.unsteady)


class Twins:
    """The recoveries of one campaign that others may be stopped beside."""

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        """Begin with the outcomes of an earlier sitting."""
        self._ends: dict[str, set[_End]] = {}
        self._finished: dict[tuple[str, FaultKind, bool], FinishedRecovery] = {}
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: Outcome) -> None:
        """Take in one more outcome; only a recovery that ran to an end by itself, all of it seen, says anything."""
        if not outcome.lives or outcome.trial.kind not in CAN_BE_TWINS:
            return
        *before, last = outcome.lives
        if not last.files or last.end is LifeEnd.STOPPED:
            return
        self._ends.setdefault(last.files, set()).add(_end_of(last))
        is_finished = last.end is LifeEnd.EXITED and last.exit_status == 0 and not last.interrupted_calls
        if not is_finished or last.evidence is not None or not before or not is_all_seen(outcome.lives):
            return
        found = FinishedRecovery(
            trial=outcome.trial.number,
            files=last.files,
            has_acknowledged=has_acknowledged(before),
            steps=last.step_digests[:MOST_STEPS],
        )
        if len(found.steps) > LEAST_STEPS and all(found.steps):
            self._finished.setdefault((found.files, outcome.trial.fault, found.has_acknowledged), found)

    def under(self, fault: FaultKind) -> tuple[FinishedRecovery, ...]:
        """Return the newest twins under one kind of fault, each kind being judged by itself.

        Of several recoveries from the same files that came out differently, under whatever kind, none is returned.
        """
        usable = [
            found for (files, kind, _), found in self._finished.items() if kind is fault and len(self._ends[files]) == 1
        ]
        return tuple(usable[-_MOST_TWINS:])


def twin_for(twins: Iterable[FinishedRecovery], files: str, lives: Sequence[LifeRecord]) -> FinishedRecovery | None:
    """Return the twin of the recovery from `files` that follows on `lives` (None: it has none, or may have none).

    Lineages of which one had acknowledged a save and the other had not are judged by different rules.
    """
    if not files or not lives or not is_all_seen(lives):
        return None
    known = has_acknowledged(lives)
    return next((twin for twin in twins if twin.files == files and twin.has_acknowledged is known), None)


def with_end_of_twin(outcome: Outcome, outcomes: Mapping[int, Outcome]) -> Outcome:
    """Put what its twin left in the place of what a stopped recovery had left by then; others stay as they are.

    So with what the probe saw of the twin's steps, of which the first are the same. `outcomes` are all of the campaign,
    by the number of their trial. How the life ended stays: it was stopped.
    """
    twin = outcomes.get(outcome.twin) if outcome.twin is not None else None
    if twin is None:
        return outcome
    end, last = twin.lives[-1], outcome.lives[-1]
    last = replace(
        last,
        crash_state=end.crash_state,
        state_digest=end.state_digest,
        step_records=end.step_records,
        step_runs=end.step_runs,
    )
    return replace(outcome, lives=(*outcome.lives[:-1], last), differences=twin.differences)


def _end_of(life: LifeRecord) -> _End:
    """Return what two recoveries from the same files must agree in."""
    final = sorted((state.key, state.digest) for state in life.crash_state if state.role is FileRole.FINAL)
    return life.end, life.exit_status, life.step_digests, tuple(final)

"""Which state was lost, for each finding that says that something was: from the records of its lineage; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from chaos.checks.lineage import without_damaged
from chaos.checks.recency import SaveOrder, order_of
from chaos.diagnosis import diagnose
from chaos.model import CheckName, Diagnosis, Finding, Outcome, Reference
from chaos.steps import expanded

_OF_LOST_STATE: Final = frozenset(
    {CheckName.SILENT_DIVERGENCE, CheckName.DATA_REPEATED, CheckName.DATA_SKIPPED, CheckName.LOST_WORK}
)

_NOT_IN_THE_STEPS: Final = (
    "All that was seen of the steps is the reference's: what was lost is not what a step is made with, such as an "
    "average of the weights beside them, or it came in after the last step."
)
_NOTHING_SEEN: Final = Diagnosis(resumed_at=None, first_difference=None, doubts=(_NOT_IN_THE_STEPS,))


def with_diagnoses(
    findings: Iterable[Finding], reference: Reference, outcomes: Sequence[Outcome]
) -> tuple[Finding, ...]:
    """Return the findings, those of which the probe saw the lineage with what was lost in it, and at which step."""
    known = {outcome.trial.number: outcome for outcome in outcomes}
    order = order_of(reference)
    return tuple(_with_diagnosis(finding, reference, order, known.get(finding.trial)) for finding in findings)


def _with_diagnosis(finding: Finding, reference: Reference, order: SaveOrder, outcome: Outcome | None) -> Finding:
    """Return one finding with its diagnosis, where there is one."""
    if finding.check not in _OF_LOST_STATE or outcome is None or not reference.steps:
        return finding
    told = diagnose(
        reference.steps,
        [expanded(life, reference.steps) for life in outcome.lives],
        expected=tuple(_expected(reference, order, outcome)),
        unsteady=frozenset(reference.unsteady),
    )
    if told is None:
        is_of_bits = finding.check is CheckName.SILENT_DIVERGENCE
        return replace(finding, diagnosis=_NOTHING_SEEN) if is_of_bits else finding
    position, diagnosis = told
    return replace(finding, diagnosis=replace(diagnosis, life=outcome.lives[position].number))


def _expected(reference: Reference, order: SaveOrder, outcome: Outcome) -> Iterator[int | None]:
    """Yield, for each life, of how many steps the newest whole checkpoint was that it found, where that is known.

    The clock counts the steps of all optimizers and ranks; these are those of the one that steps first.
    """
    yield 0
    for before in outcome.lives[:-1]:
        newest = order.newest_save(without_damaged(before))
        ticks = newest.ticks_before if newest is not None else None
        if ticks is None or not reference.profile.uses_ticks:
            yield None
        else:
            first = reference.steps[0]
            done = reference.steps[:ticks]
            yield sum((record.rank, record.optimizer) == (first.rank, first.optimizer) for record in done)

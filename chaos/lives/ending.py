"""From a life that is over to its record: what intercepted and polled lives have in common."""

from __future__ import annotations

from pathlib import Path

from chaos.intercept.pending import Sinks
from chaos.lives.process import LifeProcess, exit_of
from chaos.lives.request import LifeRequest, LifeResult, output_tail, write_log
from chaos.lives.ticks import read_steps
from chaos.lives.watch import Watch
from chaos.model import Evidence, LifeEnd, LifeRecord, Operation, Record
from chaos.states.snapshot import Snapshot


class Ending(Record, kw_only=True):
    """How a life ended: by itself (no evidence), struck, or with processes that outlived its root."""

    end: LifeEnd | None
    evidence: Evidence | None
    orphans: tuple[str, ...]
    elapsed_s: float


def life_result(
    request: LifeRequest,
    process: LifeProcess,
    watch: Watch,
    sinks: Sinks,
    snapshot: Snapshot,
    log: tuple[Operation, ...],
    ending: Ending,
) -> LifeResult:
    """Put the record together, and store the log."""
    status, signal = exit_of(process.root_status) if process.root_status is not None else (None, None)
    write_log(Path(request.folder), log)
    record = LifeRecord(
        number=request.number,
        end=ending.end or LifeEnd.NOT_STARTED,
        exit_status=status,
        signal=signal,
        evidence=ending.evidence,
        steps=watch.locator.steps,
        first_step=watch.locator.first_step,
        last_step=watch.locator.last_step,
        saves=watch.locator.saves,
        has_probe=watch.has_probe,
        acknowledgements=tuple(watch.acknowledgements),
        crash_state=snapshot.files,
        state_digest=snapshot.digest,
        other_files=snapshot.other_files,
        orphans=ending.orphans,
        num_operations=len(log),
        output_tail=output_tail(sinks),
        step_records=read_steps(sinks.ticks, has_all_details=request.is_learning),
        files=request.files,
        elapsed_s=ending.elapsed_s,
    )
    return LifeResult(record=record, log=log)

"""A life that ran on, as it would have been if it had been killed at one of its crash points; pure."""

from __future__ import annotations

import msgspec

from chaos.model import CrashPoint, Evidence, FoundState, LifeEnd, LifeRecord
from chaos.steps import first_steps


def struck_life(life: LifeRecord, found: FoundState) -> LifeRecord:
    """Return the record of `life` up to a crash point of it; what is in the folder then is not filled in."""
    point = CrashPoint(
        address=found.address,
        expected_phase=found.phase,
        fault=found.fault,
        tear_offset=found.tear_offset,
        variant=found.variant,
    )
    return msgspec.structs.replace(
        first_steps(life, found.steps),
        end=LifeEnd.STRUCK,
        exit_status=None,
        signal=None,
        evidence=Evidence(
            crash_point=point,
            phase=found.phase,
            operation_index=found.index,
            was_alive=False,
            root_signal=0,
            processes_killed=0,
            is_built=True,
            loss=found.loss,
        ),
        steps=found.steps,
        first_step=found.first_step,
        last_step=found.last_step,
        saves=found.saves,
        acknowledgements=life.acknowledgements[: found.num_acknowledged],
        crash_state=(),
        state_digest="",
        other_files=(),
        orphans=(),
        num_operations=found.index,
        output_tail="",
    )


def crash_point_of(life: LifeRecord) -> CrashPoint:
    """Return the crash point of a life that was struck."""
    assert life.evidence is not None  # noqa: S101 - only struck lives are asked
    return life.evidence.crash_point

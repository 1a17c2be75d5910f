"""Texts name the fault that they are about, and what a loss of power took away for want of which call."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS, doubts
from chaos.checks.wording import the, why_lost
from chaos.model import CheckName, FaultKind, FileSystem, Loss, NotDurable, Outcome, TrialKind

LACK = NotDurable(path="ck.pt", missing="fsync of ck.pt.tmp", published_by="rename #1 of ck.pt")
LOSS = Loss(profiles=(FileSystem.EXT4, FileSystem.XFS), not_durable=(LACK, LACK))
WHY = "ck.pt was put in place by `rename #1 of ck.pt`, but fsync of ck.pt.tmp is missing: it can be so on ext4, xfs."


def after_power_loss(records: Any, state: tuple[Any, ...], **last: Any) -> Outcome:
    """Return a lineage that lost the power in its third save, and found `state` then."""
    point = replace(records.point(3), fault=FaultKind.POWER_LOSS)
    struck = records.killed(1, 0, 2, evidence=records.evidence(point, loss=LOSS), crash_state=state)
    return records.outcome(4, TrialKind.FAULTED, struck, replace(records.finished(2, 1), **last))  # type: ignore[no-any-return]


def details(records: Any, name: CheckName, outcome: Outcome) -> str:
    """Return what the one violation of a check says."""
    [violation] = ALL_CHECKS[name](records.reference(), (outcome,), records.target).violations
    return violation.detail


def test_a_loss_of_power_says_what_was_missing(records: Any) -> None:
    """Each rule that a lost checkpoint breaks names the file, the missing call, who published it, and the profiles."""
    older = records.checkpoints(1)
    other = (*records.checkpoints(6), records.final("other"))
    said = {
        CheckName.NO_VALID_CHECKPOINT: details(
            records, CheckName.NO_VALID_CHECKPOINT, after_power_loss(records, (), first_step=None, steps=0)
        ),
        CheckName.ACKNOWLEDGED_LOST: details(records, CheckName.ACKNOWLEDGED_LOST, after_power_loss(records, older)),
        CheckName.RESUME_CRASHED: details(
            records, CheckName.RESUME_CRASHED, after_power_loss(records, older, exit_status=1)
        ),
        CheckName.SILENT_DIVERGENCE: details(
            records, CheckName.SILENT_DIVERGENCE, after_power_loss(records, older, crash_state=other)
        ),
    }
    for name, detail in said.items():
        assert detail.count(WHY) == 1, name
        assert "the kill" not in detail, name


def test_a_file_that_was_there_before_was_not_put_in_place(records: Any) -> None:
    """Without a known operation that published it, none is named; without a loss nothing is said."""
    point = replace(records.point(3), fault=FaultKind.POWER_LOSS)
    lack = replace(LACK, published_by="")
    evidence = records.evidence(point, loss=Loss(profiles=(FileSystem.POSIX,), not_durable=(lack,)))
    assert "ck.pt was there, but fsync of ck.pt.tmp is missing" in why_lost(evidence)
    assert why_lost(records.evidence(point)) == why_lost(None) == ""


@pytest.mark.parametrize("fault", FaultKind)
def test_every_fault_has_a_name(fault: FaultKind) -> None:
    """No two are called the same."""
    assert the(fault).startswith("the ")
    assert [other for other in FaultKind if the(other) == the(fault)] == [fault]


def test_doubts_count_each_kind_by_itself(records: Any) -> None:
    """So many of each kind were asked for; a kind that was not run at all is missing too, where it is asked about."""
    outcomes = (records.control(), records.lineage(4, 1, 2), records.errors(5), records.errors(6))
    assert doubts.about_kills(outcomes, 2) == []
    assert doubts.about_kills(outcomes, 3) == [
        "Only 2 of the 3 kills asked for have landed.",
        "Only 2 of the 3 faults (disk_full) asked for have landed.",
    ]
    assert doubts.about_kills((records.control(),), 3, FaultKind.IO_ERROR) == [
        "Only 0 of the 3 faults (io_error) asked for have landed."
    ]
    assert doubts.about_kills((records.control(),), 3) == ["Only 0 of the 3 kills asked for have landed."]


def test_an_error_that_met_nothing_is_drawn_anew_without_a_doubt(records: Any) -> None:
    """Where no call from the point on could fail so, the fault has not landed, and that is all there is to say."""
    outcome = records.errors(4)
    bare = records.altered(outcome, 0, evidence=replace(outcome.lives[0].evidence, errors_injected=0))
    assert bare.kills_landed == 0
    assert doubts.about_kills((bare,), 0) == []

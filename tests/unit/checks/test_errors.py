"""Lives that met an error: what they may do, what they may not, and which rule says so; one cause is one finding."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.model import Acknowledgement, CheckName, FaultKind, LifeEnd, Outcome, Violation

ERRORS = [FaultKind.DISK_FULL, FaultKind.IO_ERROR, FaultKind.SHORT_WRITE]


def broken(records: Any, *outcomes: Outcome) -> dict[CheckName, list[Violation]]:
    """Return every rule that is broken, with what was said."""
    found = {
        name: list(check(records.reference(), (records.control(), *outcomes), records.target).violations)
        for name, check in ALL_CHECKS.items()
    }
    return {name: violations for name, violations in found.items() if violations}


def only(found: dict[CheckName, list[Violation]], name: CheckName) -> str:
    """Return the detail of the only violation there is, of the rule called `name`."""
    assert list(found) == [name]
    [violation] = found[name]
    return violation.detail


@pytest.mark.parametrize("fault", ERRORS)
def test_an_error_may_come_to_the_surface(fault: FaultKind, records: Any) -> None:
    """A life that fails on an error and leaves its last save, and a later one that goes on from it, break no rule."""
    assert broken(records, records.errors(4, fault)) == {}


def test_an_error_in_a_later_life_is_no_crash_of_its_restart(records: Any) -> None:
    """Two lives fail on errors, the third finishes: neither failure is blamed on the restart."""
    lives = (
        records.erring(1, 0, 2, FaultKind.DISK_FULL),
        records.erring(2, 2, 3, FaultKind.DISK_FULL),
        records.finished(3, 3),
    )
    outcome = records.outcome(4, records.lineage(4, 2).trial.kind, *lives)
    assert broken(records, outcome) == {}
    later = records.altered(outcome, 2, exit_status=1, crash_state=records.checkpoints(3))
    assert list(broken(records, later)) == [CheckName.RESUME_CRASHED]


@pytest.mark.parametrize("fault", ERRORS)
def test_exit_status_0_without_the_last_save_is_one_finding(fault: FaultKind, records: Any) -> None:
    """The newest save that is there is not the last one, and the status says that all is well."""
    detail = only(broken(records, records.ignoring(4, fault)), CheckName.FAILED_SAVE_IGNORED)
    assert "ended with exit status 0 all the same" in detail
    assert "save 6 was to be there" in detail
    assert "the kill" not in detail


def test_exit_status_0_without_the_final_file_is_the_same_finding(records: Any) -> None:
    """The last save and the final file are missing, and so are steps: one cause, told once."""
    outcome = records.ignoring(4, crash_state=records.checkpoints(5), last_step=59)
    detail = only(broken(records, outcome), CheckName.FAILED_SAVE_IGNORED)
    assert "the final file final.pt is missing" in detail


def test_a_final_file_with_other_bits_diverges(records: Any) -> None:
    """All saves are there, and the final file has other bits: that is for the rule about bits."""
    state = (*records.checkpoints(6), records.final("other"))
    outcome = records.ignoring(4, crash_state=state, acknowledgements=records.acknowledgements(1, 6))
    assert "disk_full in save 6" in only(broken(records, outcome), CheckName.SILENT_DIVERGENCE)


def test_a_save_that_was_made_good_is_no_finding(records: Any) -> None:
    """A target that writes the rest, or tries again, ends with everything there."""
    state = (*records.checkpoints(6), records.final())
    outcome = records.ignoring(4, crash_state=state, acknowledgements=records.acknowledgements(1, 6))
    assert broken(records, outcome) == {}


def test_content_that_the_reference_never_wrote_is_no_save_of_it(records: Any) -> None:
    """A target may save something lesser when the disk is full, and call it saved; a first life has no excuse."""
    state = (records.file("ck.pt", "unheard of"), records.final())
    assert list(broken(records, records.ignoring(4, crash_state=state))) == [CheckName.FAILED_SAVE_IGNORED]


def test_content_of_a_target_that_varies_is_not_judged(records: Any) -> None:
    """Where two uninterrupted runs differ, nobody can tell which save an unknown content is."""
    state = (records.file("ck.pt", "unheard of"), records.final())
    reference = replace(records.reference(), deterministic=False)
    outcomes = (records.control(), records.ignoring(4, crash_state=state))
    check = ALL_CHECKS[CheckName.FAILED_SAVE_IGNORED]
    assert check(reference, outcomes, records.target).violations == ()


def test_an_acknowledged_file_whose_fsync_failed_is_a_finding(records: Any) -> None:
    """All is there to be seen, but nothing proves that it is on the disk."""
    outcome = records.errors(4, FaultKind.IO_ERROR)
    evidence = replace(outcome.lives[0].evidence, unsynced=("ck.pt", "."))
    detail = only(broken(records, records.altered(outcome, 0, evidence=evidence)), CheckName.FAILED_SAVE_IGNORED)
    assert "fsync of ck.pt, its output folder had failed" in detail


def test_nothing_left_is_told_by_the_rule_about_that(records: Any) -> None:
    """Without any whole checkpoint after an acknowledgement, the gravest rule speaks alone, and names the fault."""
    torn = records.file("ck.pt", "torn", is_whole=False)
    detail = only(
        broken(records, records.ignoring(4, crash_state=(torn, records.final()))), CheckName.NO_VALID_CHECKPOINT
    )
    assert "no whole checkpoint survived the full disk" in detail


def test_an_acknowledged_save_may_not_be_lost_by_an_error(records: Any) -> None:
    """The life fails, and leaves less than it had acknowledged before."""
    outcome = records.errors(4, FaultKind.IO_ERROR, crash_state=records.checkpoints(1))
    found = broken(records, replace(outcome, lives=(outcome.lives[0], records.finished(2, 1))))
    assert "only something older survived the I/O error" in only(found, CheckName.ACKNOWLEDGED_LOST)


def _claiming(records: Any, fault: FaultKind, **changes: Any) -> Outcome:
    """Return a lineage whose life met an error in save 3, and acknowledged it with what there was before."""
    good = records.acknowledgements(1, 6)
    false = Acknowledgement(save=3, step=30, is_printed=True, files=records.checkpoints(2))
    state = (*records.checkpoints(6), records.final())
    life = records.erring(1, 0, 2, fault, exit_status=0, crash_state=state, steps=60, last_step=60)
    return records.outcome(
        4,
        records.lineage(4, 2).trial.kind,
        replace(life, acknowledgements=(*good[:2], replace(false, **changes), *good[3:])),
    )


@pytest.mark.parametrize("fault", ERRORS)
def test_a_save_that_is_not_there_may_not_be_acknowledged_in_print(fault: FaultKind, records: Any) -> None:
    """Later saves are whole, yet the target said of one that it was saved when it was not."""
    detail = only(broken(records, _claiming(records, fault)), CheckName.FAILED_SAVE_IGNORED)
    assert "acknowledged step 30 all the same, but then the newest whole save was save 2 of the reference" in detail


def test_going_on_without_a_word_is_a_claim_only_after_a_short_write(records: Any) -> None:
    """Whoever was told of an error may go on and try at the next save; after a short count there was no error."""
    silent = {"is_printed": False, "step": None}
    assert broken(records, _claiming(records, FaultKind.DISK_FULL, **silent)) == {}
    found = broken(records, _claiming(records, FaultKind.SHORT_WRITE, **silent))
    assert list(found) == [CheckName.FAILED_SAVE_IGNORED]


def test_what_is_acknowledged_before_it_is_written_is_measured_by_the_reference(records: Any) -> None:
    """Where the reference, too, had not yet written save 3 when it acknowledged it, nobody can ask more."""
    early = records.finished(1, 0)
    acknowledgements = tuple(replace(item, files=records.checkpoints(item.save - 1)) for item in early.acknowledgements)
    run = records.altered(records.reference().outcomes[0], 0, acknowledgements=acknowledgements)
    reference = records.reference(outcomes=(run, run))
    check = ALL_CHECKS[CheckName.FAILED_SAVE_IGNORED]
    assert check(reference, (_claiming(records, FaultKind.DISK_FULL),), records.target).violations == ()


def test_a_life_that_hangs_on_an_error_is_a_finding(records: Any) -> None:
    """Also where it is the first life of its lineage."""
    outcome = records.errors(4, end=LifeEnd.DEADLINE, exit_status=None)
    assert "Life 1 met the full disk and was still running" in only(broken(records, outcome), CheckName.RESUME_HUNG)

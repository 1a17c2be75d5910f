"""A checkpoint that was damaged at rest: refused, passed over, or accepted; and what the other rules make of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS, doubts
from chaos.model import CheckName, CheckStatus, FileRole, LifeEnd, Outcome, Violation


def broken(records: Any, *outcomes: Outcome, **reference: Any) -> dict[CheckName, list[Violation]]:
    """Return every rule that is broken, with what was said."""
    lineages = (records.control(), *outcomes)
    found = {
        name: list(check(records.reference(**reference), lineages, records.target).violations)
        for name, check in ALL_CHECKS.items()
    }
    return {name: violations for name, violations in found.items() if violations}


def with_one_checkpoint(records: Any, outcome: Outcome) -> Outcome:
    """Return the lineage as if there had never been a checkpoint but the damaged one."""
    state = tuple(file for file in outcome.lives[0].crash_state if file.path == "ck.pt")
    return records.altered(outcome, 0, crash_state=state)  # type: ignore[no-any-return]


def test_falling_back_to_the_older_one_is_right(records: Any) -> None:
    """A life that resumes from the save before the damaged one breaks no rule: it lost no work of its own."""
    assert broken(records, records.rotten(4)) == {}


@pytest.mark.parametrize("digest", ["damaged", "whole, but another"])
def test_going_on_from_the_damaged_one_is_accepting_it(digest: str, records: Any) -> None:
    """Steps that begin where the damaged save left off tell, whether or not its format has a checksum."""
    outcome = records.rotten(4, resumed=2)
    newest, before = outcome.lives[0].crash_state
    damaged = replace(newest, digest=digest, is_whole=digest != "damaged")
    found = broken(records, records.altered(outcome, 0, crash_state=(damaged, before)))
    assert list(found) == [CheckName.CORRUPTION_ACCEPTED]
    [violation] = found[CheckName.CORRUPTION_ACCEPTED]
    assert violation.life == 2
    assert "bit 30 of element 5 of w in ck.pt was flipped; life 2 began at step 21" in violation.detail


def test_other_bits_at_the_end_are_told_once(records: Any) -> None:
    """What was accepted also shows in the final file: that is the same finding."""
    state = (*records.checkpoints(6), records.final("other"))
    outcome = records.rotten(4, resumed=2, crash_state=state)
    assert list(broken(records, outcome)) == [CheckName.CORRUPTION_ACCEPTED]
    fallen_back = records.rotten(4, crash_state=state)
    assert list(broken(records, fallen_back)) == [CheckName.SILENT_DIVERGENCE]


def test_without_any_clock_other_bits_tell(records: Any) -> None:
    """Where nothing shows from where a life began, it accepted the damage if it ends well with other bits."""
    blind = {"first_step": None, "last_step": None, "steps": 0, "has_probe": False, "acknowledgements": ()}
    other = (*records.checkpoints(6), records.final("other"))
    right = (*records.checkpoints(6), records.final())
    profile = replace(records.reference().profile, last_step=None)
    accepted = records.rotten(4, resumed=2, crash_state=other, **blind)
    assert list(broken(records, accepted, profile=profile)) == [CheckName.CORRUPTION_ACCEPTED]
    assert broken(records, records.rotten(4, resumed=2, crash_state=right, **blind), profile=profile) == {}


def test_of_a_save_of_two_files_only_other_bits_tell(records: Any) -> None:
    """The damaged file may be one that no resume reads: right bits clear it, other bits do not."""

    def two_files(item: Any) -> Any:
        """Let a state hold a second file of the same save."""
        files = [replace(file, path=f"b_{file.path}", key=f"b_{file.path}", digest=f"b{file.digest}") for file in item]
        return (*item, *(file for file in files if file.role is FileRole.CHECKPOINT))

    run = records.finished(1, 0)
    seen = tuple(replace(item, files=two_files(item.files)) for item in run.acknowledgements)
    run = replace(run, acknowledgements=seen, crash_state=two_files(run.crash_state))
    outcomes = tuple(replace(one, lives=(run,)) for one in records.reference().outcomes)
    outcome = records.rotten(4, resumed=2)
    outcome = records.altered(outcome, 0, crash_state=two_files(outcome.lives[0].crash_state))
    check = ALL_CHECKS[CheckName.CORRUPTION_ACCEPTED]
    reference = records.reference(outcomes=outcomes)
    assert check(reference, (outcome,), records.target).violations == ()
    other = records.altered(outcome, 1, crash_state=(*records.checkpoints(6), records.final("other")))
    assert len(check(reference, (other,), records.target).violations) == 1


def test_refusing_is_right_only_where_nothing_else_is_left(records: Any) -> None:
    """An error at the start, with the only save damaged, is neither finding nor doubt; with an older one it is."""
    refused = records.rotten(4, exit_status=1, first_step=None, last_step=None, steps=0, crash_state=())
    alone = with_one_checkpoint(records, refused)
    assert broken(records, alone) == {}
    assert doubts.about_endings((alone,), ()) == []
    assert list(broken(records, refused)) == [CheckName.RESUME_CRASHED]


def test_a_second_name_of_the_damaged_file_is_no_copy_of_it(records: Any) -> None:
    """Two hard links are damaged together, and read as whole where the format has no checksum: refusing is right."""
    refused = records.rotten(4, exit_status=1, first_step=None, last_step=None, steps=0, crash_state=())
    newest, _ = refused.lives[0].crash_state
    damaged = replace(newest, is_whole=True)
    linked = replace(damaged, path="ck.prev.pt", key="ck.prev.pt")
    assert broken(records, records.altered(refused, 0, crash_state=(damaged, linked))) == {}


def test_hanging_on_a_damaged_checkpoint_is_a_finding(records: Any) -> None:
    """A life that never ends has not refused."""
    hung = with_one_checkpoint(records, records.rotten(4, end=LifeEnd.DEADLINE, exit_status=None, steps=0))
    assert CheckName.RESUME_HUNG in broken(records, hung)


def test_starting_anew_without_a_word_is_lost_work(records: Any) -> None:
    """With its only checkpoint damaged, a life that begins at step 1 as if nothing had been has lost what was saved."""
    anew = with_one_checkpoint(records, records.rotten(4, resumed=0))
    assert list(broken(records, anew)) == [CheckName.LOST_WORK]


def test_damage_that_found_nothing_is_no_doubt_and_no_evidence(records: Any) -> None:
    """A kill after which there was no whole checkpoint to damage has not landed; it is drawn anew, not doubted."""
    outcome = records.rotten(4)
    point = outcome.lives[0].evidence.crash_point
    bare = records.altered(outcome, 0, evidence=records.evidence(point))
    assert bare.kills_landed == 0
    assert doubts.about_kills((bare,), 1) == ["Only 0 of the 1 faults (bit_flip) asked for have landed."]
    result = ALL_CHECKS[CheckName.CORRUPTION_ACCEPTED](records.reference(), (bare,), records.target)
    assert result.status is CheckStatus.NOT_RUN


def test_damage_of_which_nothing_was_a_flip_is_doubted(records: Any) -> None:
    """Where files were only cut, whether changed numbers are noticed was not tried; one flip is enough to say so."""
    flipped = records.rotten(4)
    proof = flipped.lives[0].evidence
    cut = records.altered(flipped, 0, evidence=replace(proof, damage="ck.pt was cut from 1,000 to 500 bytes"))
    [doubt] = doubts.about_flips([cut, cut])
    assert "No bit could be flipped in ck.pt: only cuts were tried" in doubt
    assert doubts.about_flips([cut, flipped]) == []
    assert doubts.about_flips([records.control()]) == []

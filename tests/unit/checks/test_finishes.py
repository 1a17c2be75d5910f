"""`did_not_finish` where the last step line was not seen: equal bits clear a life whose steps nobody can count."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checks.finishes import check
from chaos.model import CheckStatus, Outcome

FAILED, PASSED = CheckStatus.FAILED, CheckStatus.PASSED


def last_line_missing(records: Any, *, digest: str, bits: str, **changes: Any) -> Outcome:
    """Return a lineage without its last step line, whose last life found `digest` and left `bits`."""
    outcome = records.altered(records.lineage(4, 2), 0, crash_state=(records.file("ck.pt", digest),))
    state = (*records.checkpoints(6), records.final(bits))
    found: Outcome = records.altered(outcome, -1, last_step=59, crash_state=state, **changes)
    return found


@pytest.mark.parametrize(
    ("digest", "bits", "expected"),
    [
        ("unknown", "bits", PASSED),
        ("unknown", "other bits", FAILED),
        ("content2", "bits", FAILED),
        ("content2", "other bits", FAILED),
    ],
)
def test_equal_bits_clear_only_what_cannot_be_counted(
    digest: str, bits: str, expected: CheckStatus, records: Any
) -> None:
    """Content that the reference never wrote hides where the life began; other bits show that steps were skipped."""
    outcome = last_line_missing(records, digest=digest, bits=bits)
    assert check(records.reference(), (outcome,), records.target).status is expected


def test_a_life_without_a_probe_cannot_be_counted(records: Any) -> None:
    """Its step lines are all that there is, and of them the last is missing."""
    for bits, expected in (("bits", PASSED), ("other bits", FAILED)):
        outcome = last_line_missing(records, digest="content2", bits=bits, has_probe=False)
        assert check(records.reference(), (outcome,), records.target).status is expected


def test_equal_bits_say_nothing_of_a_target_that_varies(records: Any) -> None:
    """Nor do they where there is no final file, or a damaged one."""
    outcome = last_line_missing(records, digest="unknown", bits="bits")
    assert check(records.reference(deterministic=False), (outcome,), records.target).status is FAILED
    assert check(records.reference(final=()), (outcome,), records.target).status is FAILED
    damaged = (*records.checkpoints(6), records.final("bits", is_whole=False))
    torn = records.altered(outcome, -1, crash_state=damaged)
    assert check(records.reference(), (torn,), records.target).status is FAILED

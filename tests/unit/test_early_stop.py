"""A recovery is stopped early beside its twin alone, and only while everything agrees."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.checks.doubts import about_endings
from chaos.early_stop import MOST_STEPS, Twins, are_steps_comparable, may_stop, twin_for, with_end_of_twin
from chaos.model import CheckName, CheckStatus, FaultKind, FinishedRecovery, LifeEnd, Outcome, TrialKind
from chaos.reports.result import verified_kills

TWIN = FinishedRecovery(files="f", steps=("a", "b", "c", "d"))
DIGESTS = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("twin", "files", "steps", "expected"),
    [
        (TWIN, "f", ("a", "b"), True),
        (TWIN, "f", ("a", "b", "c"), True),
        (TWIN, "f", ("a",), False),
        (TWIN, "f", (), False),
        (TWIN, "f", ("a", "x"), False),
        (TWIN, "f", ("x", "b"), False),
        (TWIN, "f", ("a", ""), False),
        (TWIN, "f", ("a", "b", "c", "d"), False),
        (TWIN, "g", ("a", "b"), False),
        (None, "f", ("a", "b"), False),
        (FinishedRecovery(files="", steps=("a", "b", "c")), "", ("a", "b"), False),
        (FinishedRecovery(files="f", steps=("", "", "")), "f", ("", ""), False),
    ],
)
def test_all_conditions_must_hold(
    twin: FinishedRecovery | None,
    files: str,
    steps: tuple[str, ...],
    expected: bool,  # noqa: FBT001 - pytest gives it by name
) -> None:
    """The same files, at least two steps, each with a digest, each the twin's, and something left to save."""
    assert may_stop(twin, files, steps) is expected


def recovery(records: Any, number: int = 4, *, kind: TrialKind = TrialKind.FAULTED, **last: Any) -> Outcome:
    """Return a lineage killed once, whose recovery began from the files `f` and ran to its end."""
    facts = {"files": "f", "step_digests": DIGESTS, **last}
    return records.outcome(number, kind, records.killed(1, 0, 2), replace(records.finished(2, 2), **facts))


def test_a_recovery_that_ran_to_its_end_is_a_twin(records: Any) -> None:
    """Its trial, its files and its first steps are known, and whether a save had been acknowledged before it."""
    (twin,) = Twins([recovery(records)]).under(FaultKind.KILL)
    assert twin == FinishedRecovery(trial=4, files="f", has_acknowledged=True, steps=DIGESTS)
    many = recovery(records, step_digests=("a",) * 100)
    assert [len(twin.steps) for twin in Twins([many]).under(FaultKind.KILL)] == [MOST_STEPS]


@pytest.mark.parametrize(
    "last",
    [
        {"end": LifeEnd.STOPPED, "exit_status": None},
        {"end": LifeEnd.SIGNALLED, "exit_status": None, "signal": 11},
        {"end": LifeEnd.DEADLINE, "exit_status": None},
        {"exit_status": 1},
        {"files": ""},
        {"step_digests": ()},
        {"step_digests": ("a", "b")},
        {"step_digests": ("a", "", "c")},
        {"unseen_writers": ("ck.pt",)},
        {"outside_writes": ("/elsewhere",)},
        {"foreign_calls": 1},
        {"interrupted_calls": 1},
    ],
)
def test_one_that_did_not_or_was_not_all_seen_is_none(records: Any, last: dict[str, Any]) -> None:
    """One that failed, was stopped itself, left something unseen, or has steps without digests proves nothing."""
    assert Twins([recovery(records, **last)]).under(FaultKind.KILL) == ()


@pytest.mark.parametrize("kind", [kind for kind in TrialKind if kind not in {TrialKind.FAULTED, TrialKind.EXPLORED}])
def test_only_faulted_and_explored_trials_have_twins(records: Any, kind: TrialKind) -> None:
    """Never a reference, a control, a canary, or a repetition with other lives."""
    assert Twins([recovery(records, kind=kind)]).under(FaultKind.KILL) == ()


def test_a_first_life_is_no_twin(records: Any) -> None:
    """What was not started again is no recovery, whatever it has digests of."""
    alone = records.outcome(4, TrialKind.FAULTED, records.finished(1, 0, files="f", step_digests=DIGESTS))
    assert Twins([alone]).under(FaultKind.KILL) == ()


def test_a_life_that_met_an_error_is_no_twin(records: Any) -> None:
    """What an error made of a life is not what its files made of it."""
    evidence = records.erring(2, 2, 3, FaultKind.DISK_FULL).evidence
    assert Twins([recovery(records, evidence=evidence)]).under(FaultKind.KILL) == ()


def test_each_kind_of_fault_has_twins_of_its_own(records: Any) -> None:
    """Kinds are judged apart, so a recovery is not stopped beside one that another kind is judged by."""
    assert Twins([recovery(records)]).under(FaultKind.TORN_WRITE) == ()


@pytest.mark.parametrize(
    "other",
    [
        {"step_digests": ("a", "b", "c", "x")},
        {"exit_status": 1},
        {"end": LifeEnd.DEADLINE, "exit_status": None},
        {"crash_state": ()},
    ],
)
def test_twins_that_disagree_are_not_used(records: Any, other: dict[str, Any]) -> None:
    """Of two recoveries from the same files that came out differently neither says how a third one will."""
    twins = Twins([recovery(records), recovery(records, 5, **other)])
    assert twins.under(FaultKind.KILL) == ()
    assert len(Twins([recovery(records), recovery(records, 5)]).under(FaultKind.KILL)) == 1


def test_a_twin_is_found_by_files_and_acknowledgement(records: Any) -> None:
    """The same files, lives that left nothing elsewhere, and an acknowledged save before in both or in neither."""
    twins = Twins([recovery(records)]).under(FaultKind.KILL)
    before = records.killed(1, 0, 2)
    assert twin_for(twins, "f", [before]) == twins[0]
    assert twin_for(twins, "g", [before]) is None
    assert twin_for(twins, "", [before]) is None
    assert twin_for(twins, "f", []) is None
    assert twin_for(twins, "f", [replace(before, acknowledgements=())]) is None
    assert twin_for(twins, "f", [replace(before, outside_writes=("/elsewhere",))]) is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"unsteady": ("rng.random",)}, True),
        ({"unsteady": ("rng.random", "weights")}, False),
        ({"deterministic": False}, False),
    ],
)
def test_references_must_have_agreed(
    records: Any,
    changes: dict[str, Any],
    expected: bool,  # noqa: FBT001 - pytest gives it by name
) -> None:
    """In their final bits, and in all that the probe saw but generators that nobody seeded."""
    assert are_steps_comparable(records.reference(**changes)) is expected


def stopped(records: Any, number: int = 5, **twin: Any) -> tuple[Outcome, Outcome]:
    """Return a finished recovery, and one that was stopped early beside it, with what it ended with."""
    finished = recovery(records, **twin)
    life = replace(finished.lives[-1], end=LifeEnd.STOPPED, exit_status=None, signal=9, steps=2, crash_state=())
    early = records.outcome(number, TrialKind.FAULTED, records.killed(1, 0, 2), life)
    early = replace(early, twin=finished.trial.number)
    return finished, with_end_of_twin(early, {finished.trial.number: finished})


def test_a_stopped_recovery_breaks_no_rule_and_proves_none(records: Any) -> None:
    """Beside an intact twin nothing is found or doubted, and no kill of it is a verified one."""
    finished, early = stopped(records)
    reference = records.reference()
    for name, check in ALL_CHECKS.items():
        assert check(reference, (records.control(), finished, early), records.target).violations == (), name
    assert about_endings([early], []) == []
    assert verified_kills(reference, (finished, early)) == finished.kills_landed
    alone = ALL_CHECKS[CheckName.SILENT_DIVERGENCE](reference, (early,), records.target)
    assert alone.status is CheckStatus.NOT_RUN


def test_a_stopped_recovery_has_its_twins_wrong_bits(records: Any) -> None:
    """What its twin ended with is found of it, too: the sentence says that it was stopped, and beside which trial."""
    _, early = stopped(records, crash_state=(*records.checkpoints(6), records.final("others")))
    result = ALL_CHECKS[CheckName.SILENT_DIVERGENCE](records.reference(), (early,), records.target)
    (violation,) = result.violations
    assert violation.trial == early.trial.number
    assert "was stopped early, beside trial 4" in violation.detail


def test_a_stopped_recovery_has_its_twins_data(records: Any) -> None:
    """What its twin was fed with in the steps that the stopped one did not come to is found of it, too."""
    _, early = stopped(records, **records.fed(2, 31))
    result = ALL_CHECKS[CheckName.DATA_SKIPPED](records.reference(), (early,), records.target)
    assert [violation.trial for violation in result.violations] == [early.trial.number]


def test_a_stopped_recovery_that_began_too_early_has_lost_work(records: Any) -> None:
    """Where it began was seen."""
    finished = recovery(records)
    life = replace(finished.lives[-1], end=LifeEnd.STOPPED, exit_status=None, steps=2, first_step=1, last_step=2)
    early = replace(records.outcome(5, TrialKind.FAULTED, records.killed(1, 0, 2), life), twin=4)
    result = ALL_CHECKS[CheckName.LOST_WORK](records.reference(), (early,), records.target)
    assert [violation.trial for violation in result.violations] == [5]

"""A diverged lineage is run again with parts of its checkpoint reset; what is said follows from the ends alone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.fingerprints import fingerprint_of, in_words, next_fingerprints, with_fingerprint
from chaos.model import (
    CheckName,
    FaultKind,
    Fingerprint,
    LifeEnd,
    LifeRecord,
    Outcome,
    ResetPart,
    TrialKind,
)
from chaos.verdict import findings_of

PARTS = ("momentum", "step", "weights")


def ended(records: Any, bits: str, **changes: Any) -> LifeRecord:
    """Return a resumed life without a probe that ended with some bits."""
    state = (*records.checkpoints(6), records.final(bits))
    return replace(records.finished(2, 2, step_runs=()), **{"crash_state": state, **changes})


def lineage(records: Any, number: int, bits: str = "wrong", **changes: Any) -> Outcome:
    """Return a lineage that was killed once and ended with some bits."""
    killed = records.killed(1, 0, 2, step_runs=())
    return records.outcome(number, TrialKind.FAULTED, killed, ended(records, bits, **changes))


def again(records: Any, number: int, part: str, bits: str, done: dict[str, Any] | None = None, **last: Any) -> Outcome:
    """Return lineage 4 once more, with a part reset, which ended with some bits."""
    outcome = lineage(records, number, bits, **last)
    trial = replace(outcome.trial, kind=TrialKind.FINGERPRINT, repeats=4, reset=part)
    facts = {"part": part, "parts": PARTS, "changed": 5, **(done or {})}
    return replace(outcome, trial=trial, reset=ResetPart(**facts))


def found(records: Any, *ends: Outcome, control: str = "wrong") -> Fingerprint | None:
    """Return what is found out of lineage 4, which ended with wrong bits."""
    every = (lineage(records, 4), again(records, 5, "", control), *ends)
    return fingerprint_of(records.reference(), every)


def test_first_the_control_then_one_reset_for_each_part(records: Any) -> None:
    """Each trial repeats the lineage's kills with its seed; parts that are named as weights are tried last."""
    reference, diverged = records.reference(), lineage(records, 4)
    (control,) = next_fingerprints(reference, (diverged,), records.target, 9)
    assert (control.number, control.kind, control.repeats, control.reset) == (9, TrialKind.FINGERPRINT, 4, "")
    assert (control.crash_points, control.hash_seed) == (diverged.trial.crash_points, diverged.trial.hash_seed)
    resets = next_fingerprints(reference, (diverged, again(records, 9, "", "wrong")), records.target, 10)
    assert [(trial.number, trial.repeats, trial.reset) for trial in resets] == [
        (10, 4, "momentum"),
        (11, 4, "step"),
        (12, 4, "weights"),
    ]


def test_at_most_eight_parts_are_tried(records: Any) -> None:
    """Each costs a lineage."""
    control = again(records, 5, "", "wrong", {"parts": tuple(f"part{number}" for number in range(20))})
    assert len(next_fingerprints(records.reference(), (lineage(records, 4), control), records.target, 6)) == 8


def test_the_shortest_lineage_is_chosen(records: Any) -> None:
    """Of several that diverged, the one with the fewest lives, since it is run again and again."""
    first, second = records.killed(1, 0, 1, step_runs=()), records.killed(2, 1, 2, step_runs=())
    long = records.outcome(3, TrialKind.FAULTED, first, second, ended(records, "wrong", number=3))
    trials = next_fingerprints(records.reference(), (long, lineage(records, 4)), records.target, 9)
    assert [trial.repeats for trial in trials] == [4]


@pytest.mark.parametrize("bits", ["bits", "wrong"])
def test_nothing_is_run_again_of_what_a_probe_saw(records: Any, bits: str) -> None:
    """A lineage whose steps are not the reference's is diagnosed by them; one that ended as it should needs none."""
    outcome = lineage(records, 4, bits, step_records=records.steps()[:1] if bits == "wrong" else ())
    assert next_fingerprints(records.reference(), (outcome,), records.target, 9) == ()


def test_what_no_step_shows_is_looked_for_from_outside(records: Any) -> None:
    """All steps are the reference's and the final bits are not: what was lost lies beside the steps."""
    outcome = lineage(records, 4, "wrong", step_runs=records.runs(2, 40))
    (control,) = next_fingerprints(records.reference(), (outcome,), records.target, 9)
    assert (control.repeats, control.reset) == (4, "")


@pytest.mark.parametrize(
    "changes",
    [
        {"deterministic": False},
        {"fault": FaultKind.BIT_FLIP},
        {"end": LifeEnd.DEADLINE, "exit_status": None},
        {"without_checkpoint": True},
        {"is_landed": False},
    ],
)
def test_nothing_is_run_again_that_shows_nothing(records: Any, changes: dict[str, Any]) -> None:
    """Where bits cannot be compared, the checkpoint was damaged, no checkpoint was left, or the end was not seen."""
    reference = records.reference(deterministic=changes.pop("deterministic", True))
    point = replace(records.point(3), fault=changes.pop("fault", FaultKind.KILL))
    signal = 9 if changes.pop("is_landed", True) else 0
    killed = records.killed(1, 0, 2, step_runs=(), evidence=records.evidence(point, root_signal=signal))
    if changes.pop("without_checkpoint", False):
        killed = replace(killed, crash_state=())
    outcome = records.outcome(4, TrialKind.FAULTED, killed, ended(records, "wrong", **changes))
    assert next_fingerprints(reference, (outcome,), records.target, 9) == ()


def test_a_stopped_recovery_is_not_run_again(records: Any) -> None:
    """It has no end of its own to be held against."""
    outcome = replace(lineage(records, 4, end=LifeEnd.STOPPED, exit_status=None), twin=3)
    assert next_fingerprints(records.reference(), (outcome,), records.target, 9) == ()


def test_no_resets_where_the_control_ends_otherwise(records: Any) -> None:
    """A lineage that does not end with the same bits again cannot be compared with anything, and nothing is said."""
    every = (lineage(records, 4), again(records, 5, "", "others"), again(records, 6, "momentum", "wrong"))
    assert next_fingerprints(records.reference(), every[:2], records.target, 6) == ()
    assert fingerprint_of(records.reference(), every) is None


def test_the_part_whose_reset_changes_nothing_is_named(records: Any) -> None:
    """The other ones are used, since their reset changes the end."""
    fingerprint = found(
        records,
        again(records, 6, "momentum", "wrong"),
        again(records, 7, "step", "s"),
        again(records, 8, "weights", "w"),
    )
    assert fingerprint == Fingerprint(trial=4, unused=("momentum",), used=("step", "weights"))
    assert "Resetting `momentum` in the checkpoint changes nothing: the resumed run does not use it." in in_words(
        fingerprint
    )


def test_where_all_parts_are_used_the_loss_is_not_in_the_checkpoint(records: Any) -> None:
    """That is said only where every part was tried and showed something."""
    ends = [again(records, 6 + place, part, f"other{place}") for place, part in enumerate(PARTS)]
    fingerprint = found(records, *ends)
    assert fingerprint is not None
    assert in_words(fingerprint).endswith(
        "Every part of the checkpoint is used (`momentum`, `step`, `weights`): what is lost is not in it."
    )
    fewer = found(records, *ends[:2])
    assert fewer is not None
    assert "Every part" not in in_words(fewer)
    assert in_words(fewer).endswith("1 further part not tried.")


@pytest.mark.parametrize(
    ("done", "last", "reason"),
    [
        ({}, {"exit_status": 1}, "the resumed run failed without it"),
        ({}, {"end": LifeEnd.SIGNALLED, "exit_status": None}, "the resumed run failed without it"),
        ({}, {"end": LifeEnd.DEADLINE, "exit_status": None}, "the resumed run did not end without it"),
        ({}, {"crash_state": ()}, "the resumed run left no final file without it"),
        ({"changed": 0}, {}, "it is zero in the checkpoint already"),
        ({"problem": "it holds no number"}, {}, "it could not be reset (it holds no number)"),
    ],
)
def test_a_reset_that_shows_nothing_is_told(
    records: Any, done: dict[str, Any], last: dict[str, Any], reason: str
) -> None:
    """A run that failed without a part may use it or not; one that could not be reset was not tried."""
    fingerprint = found(records, again(records, 6, "momentum", "wrong", done, **last), again(records, 7, "step", "s"))
    assert fingerprint is not None
    assert (fingerprint.unused, fingerprint.used) == ((), ("step",))
    assert fingerprint.unknown == {"momentum": reason}
    assert f"Of `momentum` nothing is known: {reason}." in in_words(fingerprint)


def test_a_checkpoint_that_is_refused_shows_nothing(records: Any) -> None:
    """Whoever begins anew ends with the reference's bits, or always with the same ones."""
    anew = [again(records, 6 + place, part, "bits") for place, part in enumerate(PARTS)]
    alike = [again(records, 6 + place, part, "alike") for place, part in enumerate(PARTS)]
    assert found(records, *anew) is None
    assert found(records, *alike) is None


def test_it_is_told_with_the_finding_of_its_lineage(records: Any) -> None:
    """It stands in that finding alone, or in the first one where its lineage stands for none."""
    reference, diverged = records.reference(), lineage(records, 4)
    violations = ALL_CHECKS[CheckName.SILENT_DIVERGENCE](reference, (diverged,), records.target).violations
    (finding,) = findings_of(violations, "run")
    fingerprint = Fingerprint(trial=4, unused=("momentum",))
    other = replace(finding, trial=5, id="other")
    told = with_fingerprint((other, finding), fingerprint)
    assert told == (
        other,
        replace(finding, fingerprint=fingerprint),
    )
    first, second = with_fingerprint((other, finding), replace(fingerprint, trial=6))
    assert (first.fingerprint is not None, second.fingerprint) == (True, None)
    assert with_fingerprint((other,), None) == (other,)
    lost = replace(finding, check=CheckName.LOST_WORK)
    assert with_fingerprint((lost,), fingerprint) == (lost,)

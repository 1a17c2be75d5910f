"""Each check passes on good records, fails on the smallest bad ones, and says when it was not run."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.checks.severity import severity_of
from chaos.model import (
    CheckName,
    CheckResult,
    CheckStatus,
    FileRole,
    Outcome,
    Severity,
    TrialKind,
)


def run(name: CheckName, records: Any, *outcomes: Outcome, **reference: Any) -> CheckResult:
    """Run one check on the given lineages."""
    return ALL_CHECKS[name](records.reference(**reference), outcomes, records.target)


def only(result: CheckResult) -> str:
    """Return the detail of the one violation of a failed check."""
    assert result.status is CheckStatus.FAILED
    (violation,) = result.violations
    return violation.detail


@pytest.mark.parametrize("name", ALL_CHECKS)
def test_every_check_passes_on_good_records(name: CheckName, records: Any) -> None:
    """A campaign in which nothing is wrong passes each check, under the name that the registry gives it."""
    result = run(name, records, *records.outcomes(), records.errors(7), records.rotten(8))
    assert result == CheckResult(check=name, status=CheckStatus.PASSED)


@pytest.mark.parametrize(
    "name",
    [name for name in ALL_CHECKS if name not in {CheckName.SAVING_CHANGES_TRAINING, CheckName.UNSAFE_CHECKPOINT}],
)
def test_every_check_of_lineages_is_not_run_without_any(name: CheckName, records: Any) -> None:
    """Where there is no lineage a check says that it was not run, and why."""
    result = run(name, records)
    assert result.status is CheckStatus.NOT_RUN
    assert result.reason


def test_the_registry_is_complete() -> None:
    """Every name of a check has a rule, in the order of the names."""
    assert list(ALL_CHECKS) == list(CheckName)


def test_only_two_checks_are_warnings() -> None:
    """Leaks and unsafe files are warnings, all else is an error."""
    warnings = {name for name in CheckName if severity_of(name) is Severity.WARNING}
    assert warnings == {CheckName.LEAKED_FILES, CheckName.UNSAFE_CHECKPOINT}


# --- no_valid_checkpoint --------------------------------------------------------------------------


def test_survival_needs_a_whole_file(records: Any) -> None:
    """A torn file alone is a violation that names file, size and reason."""
    torn = records.file("ck.pt", "torn", is_whole=False, size_bytes=4096, reason="it ends early")
    bad = records.altered(records.lineage(4, 2), 0, crash_state=(torn,))
    result = run(CheckName.NO_VALID_CHECKPOINT, records, bad)
    assert "ck.pt (4,096 bytes, damaged: it ends early)" in only(result)
    assert (result.violations[0].trial, result.violations[0].life) == (4, 1)


def test_survival_counts_an_empty_folder(records: Any) -> None:
    """No checkpoint file at all is a violation too."""
    bad = records.altered(records.lineage(4, 2), 0, crash_state=())
    assert "no checkpoint file is left" in only(run(CheckName.NO_VALID_CHECKPOINT, records, bad))


def test_survival_does_not_count_final_files(records: Any) -> None:
    """A whole final file is no checkpoint."""
    bad = records.altered(records.lineage(4, 2), 0, crash_state=(records.final(),))
    assert run(CheckName.NO_VALID_CHECKPOINT, records, bad).status is CheckStatus.FAILED


def test_survival_asks_nothing_before_the_first_acknowledgement(records: Any) -> None:
    """A kill in the first save may leave nothing, and such a campaign has not judged survival."""
    result = run(CheckName.NO_VALID_CHECKPOINT, records, records.lineage(4, 0))
    assert result.status is CheckStatus.NOT_RUN


def test_survival_remembers_acknowledgements_of_earlier_lives(records: Any) -> None:
    """A second life that saved nothing yet must not lose what the first one saved."""
    bad = records.altered(records.lineage(4, 2, 2), 1, crash_state=())
    assert run(CheckName.NO_VALID_CHECKPOINT, records, bad).violations[0].life == 2


def test_survival_does_not_judge_unknown_formats(records: Any) -> None:
    """Where nobody can tell about any file, nothing is claimed."""
    unknown = records.file("ck.pt", "raw", is_whole=None, reason="unknown format")
    bad = records.altered(records.lineage(4, 2), 0, crash_state=(unknown,))
    assert run(CheckName.NO_VALID_CHECKPOINT, records, bad).status is CheckStatus.NOT_RUN


@pytest.mark.parametrize(("in_control", "status"), [(False, CheckStatus.NOT_RUN), (None, CheckStatus.FAILED)])
def test_survival_asks_no_more_than_the_control_has(
    in_control: bool | None,  # noqa: FBT001 - a parameter of a test
    status: CheckStatus,
    records: Any,
) -> None:
    """What looks damaged without any kill is not judged; of an unknown format an empty file still is no checkpoint."""
    odd = (records.file("ck.pt", "odd", is_whole=in_control),)
    acks = tuple(replace(ack, files=odd) for ack in records.acknowledgements(1, 6))
    control = records.altered(records.control(), 0, acknowledgements=acks, crash_state=(*odd, records.final()))
    empty = records.file("ck.pt", "", is_whole=False, reason="it is empty", size_bytes=0)
    bad = records.altered(records.lineage(4, 2), 0, crash_state=(empty,))
    result = run(CheckName.NO_VALID_CHECKPOINT, records, bad, outcomes=(control, control))
    assert result.status is status


def test_survival_judges_a_file_that_the_control_does_not_have(records: Any) -> None:
    """A torn temporary that alone is left is no checkpoint, whatever the control leaves."""
    torn = records.file("ck.new.pt", "torn", is_whole=False)
    bad = records.altered(records.lineage(4, 2), 0, crash_state=(torn,))
    assert run(CheckName.NO_VALID_CHECKPOINT, records, bad).status is CheckStatus.FAILED


def test_survival_ignores_kills_without_evidence(records: Any) -> None:
    """What was not proven to be our kill is not judged as one."""
    life = records.killed(1, 0, 2, evidence=None, crash_state=())
    outcome = records.outcome(4, TrialKind.FAULTED, life, records.finished(2, 2))
    assert run(CheckName.NO_VALID_CHECKPOINT, records, outcome).status is CheckStatus.NOT_RUN


# --- acknowledged_lost ----------------------------------------------------------------------------


def kill_leaving(records: Any, *files: Any) -> Outcome:
    """Return a lineage killed after two acknowledged saves, with `files` left."""
    outcome: Outcome = records.altered(records.lineage(4, 2), 0, crash_state=files)
    return outcome


@pytest.mark.parametrize("digest", ["content2", "content3", "content6", "never seen"])
def test_acknowledged_content_or_newer_is_kept(digest: str, records: Any) -> None:
    """The acknowledged content, that of a later save, and content that nobody saw before are new enough."""
    outcome = kill_leaving(records, records.file("anything.pt", digest))
    assert run(CheckName.ACKNOWLEDGED_LOST, records, outcome).status is CheckStatus.PASSED


def test_acknowledged_content_is_lost(records: Any) -> None:
    """Only the save before the acknowledged one is left."""
    outcome = kill_leaving(records, records.file("ck.prev.pt", "content1"), records.file("ck.pt", "x", is_whole=False))
    detail = only(run(CheckName.ACKNOWLEDGED_LOST, records, outcome))
    assert "acknowledged step 20" in detail
    assert "save 1 of the reference" in detail


def test_acknowledged_leaves_total_loss_to_survival(records: Any) -> None:
    """With nothing whole, this check is not run: the other one tells."""
    outcome = kill_leaving(records, records.file("ck.pt", "x", is_whole=False))
    assert run(CheckName.ACKNOWLEDGED_LOST, records, outcome).status is CheckStatus.NOT_RUN


def test_acknowledged_before_it_was_written(records: Any) -> None:
    """A printed step that the reference knows demands its content, though the file was never there."""
    acks = (records.acknowledgement(1), replace(records.acknowledgement(2), files=records.checkpoints(1)))
    life = records.killed(1, 0, 2, acknowledgements=acks, crash_state=records.checkpoints(1))
    outcome = records.outcome(4, TrialKind.FAULTED, life, records.finished(2, 1))
    assert run(CheckName.ACKNOWLEDGED_LOST, records, outcome).status is CheckStatus.FAILED


def test_acknowledged_order_of_the_lineage_alone(records: Any) -> None:
    """Content that the reference never wrote is ordered by the lineage's own acknowledgements."""
    mine = {n: (records.file("ck.pt", f"own{n}"),) for n in (1, 2)}
    acks = tuple(replace(records.acknowledgement(n), files=mine[n]) for n in (1, 2))
    life = records.killed(1, 0, 2, acknowledgements=acks)
    for left, status in ((1, CheckStatus.FAILED), (2, CheckStatus.PASSED)):
        outcome = records.outcome(4, TrialKind.FAULTED, replace(life, crash_state=mine[left]))
        assert run(CheckName.ACKNOWLEDGED_LOST, records, outcome).status is status


# --- silent_divergence, saving_changes_training ---------------------------------------------------


def test_other_bits(records: Any) -> None:
    """Digests of both and the kills are told; missing and damaged files are another check's."""
    bad = records.altered(records.lineage(4, 2), -1, crash_state=(records.final("other"),))
    detail = only(run(CheckName.SILENT_DIVERGENCE, records, bad))
    assert "has digest other, that of the reference bits" in detail
    assert str(bad.trial.crash_points[0]) in detail
    for state in ((), (records.final("other", is_whole=False),)):
        outcome = records.altered(records.lineage(4, 2), -1, crash_state=state)
        assert run(CheckName.SILENT_DIVERGENCE, records, outcome).status is CheckStatus.NOT_RUN


def test_other_bits_of_a_target_that_is_not_deterministic(records: Any) -> None:
    """Nothing can be said, and the reason names the tensors."""
    bad = records.altered(records.lineage(4, 2), -1, crash_state=(records.final("other"),))
    result = run(CheckName.SILENT_DIVERGENCE, records, bad, deterministic=False, differing_tensors=("w.0",))
    assert result.status is CheckStatus.NOT_RUN
    assert "w.0" in result.reason


def test_saving_changes_training(records: Any) -> None:
    """Other bits without saves are a violation; without such a run nothing is said."""
    name = CheckName.SAVING_CHANGES_TRAINING
    assert "final.pt has digest x without saving" in only(run(name, records, no_save_final=(records.final("x"),)))
    assert run(name, records, no_save_final=None).status is CheckStatus.NOT_RUN
    assert run(name, records, no_save_final=()).status is CheckStatus.NOT_RUN
    assert run(name, records, no_save_final=(records.final("x"),), deterministic=False).status is CheckStatus.NOT_RUN


# --- orphan_processes, leaked_files, unsafe_checkpoint ----------------------------------------------


def test_a_process_that_goes_on(records: Any) -> None:
    """Its command line is told."""
    bad = records.altered(records.control(), -1, orphans=("python worker.py",))
    assert "python worker.py" in only(run(CheckName.ORPHAN_PROCESSES, records, bad))


def with_leftovers(records: Any, other: Any, *, key: str = "") -> tuple[Outcome, ...]:
    """Return a campaign whose lineages leave the files named by `other(kills)`, temporaries where `key` is given."""
    changed = []
    for outcome in records.outcomes():
        names = tuple(other(outcome.kills_landed))
        if key:
            files = [records.file(name, name, FileRole.TEMPORARY, key=key) for name in names]
            changes = {"crash_state": (*outcome.lives[-1].crash_state, *files)}
        else:
            changes = {"other_files": names}
        changed.append(records.altered(outcome, -1, **changes))
    return tuple(changed)


@pytest.mark.parametrize("key", ["", "ck.pt.{any}"])
def test_files_that_grow_with_kills(key: str, records: Any) -> None:
    """One more temporary per kill is a leak, whether it is known as a temporary or not."""
    outcomes = with_leftovers(records, lambda kills: [f"ck.pt.{n}" for n in range(kills)], key=key)
    assert "3 after 3 kills, at most 1 after one or none" in only(run(CheckName.LEAKED_FILES, records, *outcomes))


@pytest.mark.parametrize(
    "names",
    [
        lambda kills: ["out.txt", "vocab.json"][: 1 + (kills > 0)],
        lambda kills: [f"run{n}.log" for n in range(kills + 1)],
        lambda kills: [f"events.out.{n}" for n in range(kills + 1)],
        lambda kills: [f"metrics_{n}.csv" for n in range(kills + 1)],
        lambda kills: ["ck.pt.tmp"] if kills else [],
        lambda kills: ["ck.pt.tmp"] if kills > 1 else [],
    ],
    ids=["fixed", "log", "events", "one log a life", "fixed temporary", "fixed temporary after many"],
)
def test_files_that_are_no_leak(names: Any, records: Any) -> None:
    """Logs of each life, and names that are written over, do not grow without end."""
    outcomes = with_leftovers(records, names)
    assert run(CheckName.LEAKED_FILES, records, *outcomes).status is CheckStatus.PASSED


def test_ignored_files_are_no_leak(records: Any) -> None:
    """The globs of `ignore` mean what they mean for roles: `**` is any depth, a bare name any folder."""
    outcomes = with_leftovers(records, lambda kills: [f"a/b/tmp.{n}" for n in range(kills)])
    check = ALL_CHECKS[CheckName.LEAKED_FILES]
    for glob, status in (("a/**/tmp.*", "passed"), ("tmp.*", "passed"), ("a", "passed"), ("a/tmp.*", "failed")):
        target = replace(records.target, ignore=(glob,))
        assert check(records.reference(), outcomes, target).status == status, glob


def test_leaks_need_a_control_and_many_kills(records: Any) -> None:
    """Without a lineage of three kills, or one of none, there is nothing to compare."""
    control, one, _, three = records.outcomes()
    assert run(CheckName.LEAKED_FILES, records, control, one).status is CheckStatus.NOT_RUN
    assert run(CheckName.LEAKED_FILES, records, one, three).status is CheckStatus.NOT_RUN
    leaking = records.altered(three, -1, other_files=("tmp.1", "tmp.2"))
    assert "2 after 3 kills, at most 0" in only(run(CheckName.LEAKED_FILES, records, control, leaking))


def test_an_unsafe_checkpoint(records: Any) -> None:
    """The refused files are named; where nobody tried, nothing is said."""
    assert "ck.pt" in only(run(CheckName.UNSAFE_CHECKPOINT, records, unsafe=("ck.pt",)))
    assert run(CheckName.UNSAFE_CHECKPOINT, records, unsafe=None).status is CheckStatus.NOT_RUN

"""What was not proven makes a campaign inconclusive, and a sentence says what it was."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.checks import ALL_CHECKS
from chaos.model import (
    CheckName,
    CheckResult,
    CheckStatus,
    FileRole,
    LifeEnd,
    Outcome,
    Phase,
    Reference,
    Target,
    TrialKind,
    Verdict,
)


def test_no_canary_is_inconclusive(records: Any) -> None:
    """Without the planted bug nothing shows that the checks work."""
    assert records.judged(canary=None).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("position", [0, 1])
def test_a_canary_without_one_of_its_bugs_is_inconclusive(position: int, records: Any) -> None:
    """Both planted bugs must be seen: torn checkpoints in the first life, a flipped bit in the last."""
    good = records.lineage(3, 2).lives[position].crash_state
    canary = records.altered(records.canary(), position, crash_state=good)
    judgement = records.judged(canary=canary)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "did not find the planted bug" in judgement.inconclusive[0]


def test_a_target_that_is_not_deterministic(records: Any) -> None:
    """Its final bits are in doubt, by name, and the canary's flipped bit is not asked for."""
    good = records.lineage(3, 2).lives[1].crash_state
    canary = records.altered(records.canary(), 1, crash_state=good)
    reference = records.reference(deterministic=False, differing_tensors=("blocks.0.w",))
    judgement = records.judged(reference=reference, canary=canary)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert len(judgement.inconclusive) == 1
    assert "blocks.0.w" in judgement.inconclusive[0]


def test_a_control_that_fails_or_is_missing(records: Any) -> None:
    """Without a good control nothing can be blamed on a kill."""
    failed = records.with_life(2, 0, exit_status=3, output_tail="no such file\n")
    judgement = records.judged(outcomes=failed)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "exit status 3; last line: no such file" in judgement.inconclusive[0]
    assert records.judged(outcomes=records.outcomes()[1:]).verdict is Verdict.INCONCLUSIVE


def test_a_lineage_that_stops_without_a_violation(records: Any) -> None:
    """A life that our holding disturbed, or that was not started, is no finding and no pass."""
    for changes in ({"exit_status": 1, "interrupted_calls": 2}, {"end": LifeEnd.NOT_STARTED, "exit_status": None}):
        judgement = records.judged(outcomes=records.with_life(4, -1, **changes))
        assert judgement.verdict is Verdict.INCONCLUSIVE
        assert "Trial 4 did not run to its end" in judgement.inconclusive[0]


def test_a_target_that_never_saves(records: Any) -> None:
    """No checkpoint, no acknowledgement: nothing was tested."""
    bare = {"acknowledgements": (), "crash_state": (records.final(),)}
    outcomes = (records.altered(records.control(), 0, **bare),)
    runs = (records.altered(records.control(), 0, **bare),) * 2
    judgement = records.judged(reference=records.reference(outcomes=runs), outcomes=outcomes, kills_requested=0)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert any("ck*.pt was ever seen" in text for text in judgement.inconclusive)


def stripped(records: Any, *, acknowledged: bool, is_whole: bool | None) -> dict[str, Any]:
    """Return reference and lineages whose checkpoints are judged as given, with or without acknowledgements."""

    def strip(outcome: Outcome) -> Outcome:
        """Change every life of one lineage."""
        lives = []
        for life in outcome.lives:
            state = tuple(
                replace(file, is_whole=is_whole) if file.role is FileRole.CHECKPOINT else file
                for file in life.crash_state
            )
            acks = tuple(replace(ack, files=()) for ack in life.acknowledgements) if acknowledged else ()
            lives.append(replace(life, acknowledgements=acks, crash_state=state))
        return replace(outcome, lives=tuple(lives))

    reference = records.reference(outcomes=tuple(strip(run) for run in records.reference().outcomes))
    return {"reference": reference, "outcomes": tuple(strip(outcome) for outcome in records.outcomes())}


def test_saves_without_acknowledgement(records: Any) -> None:
    """Nothing says what had to survive."""
    judgement = records.judged(**stripped(records, acknowledged=False, is_whole=True))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.inconclusive[0].startswith("No save was ever acknowledged")


def test_checkpoints_that_nobody_can_judge(records: Any) -> None:
    """A format of one's own needs a `verify` command."""
    judgement = records.judged(**stripped(records, acknowledged=True, is_whole=None))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert any("`verify`" in text for text in judgement.inconclusive)


@pytest.mark.parametrize(
    ("changes", "is_doubt"),
    [
        ({"unseen_writers": ("ck.pt",)}, True),
        ({"unseen_writers": ("ck.pt/model.bin",)}, True),
        ({"unseen_writers": ("final.pt",)}, True),
        ({"unseen_writers": ("rng.bin",)}, True),
        ({"unseen_writers": ("logs/run.log",)}, False),
        ({"foreign_calls": 1}, True),
    ],
)
def test_what_was_not_seen(changes: dict[str, Any], is_doubt: bool, records: Any) -> None:  # noqa: FBT001 - a parameter of a test
    """Unseen writes to files that are not ignored, and calls that cannot be followed, leave doubts."""
    target = replace(records.target, ignore=("*.log",))
    judgement = records.judged(outcomes=records.with_life(5, 1, **changes), target=target)
    assert judgement.verdict is (Verdict.INCONCLUSIVE if is_doubt else Verdict.PASS)


def test_further_causes(records: Any) -> None:
    """What the campaign itself says was not covered is a doubt."""
    judgement = records.judged(causes=("The budget was spent.",))
    assert judgement.inconclusive == ("The budget was spent.",)
    assert judgement.verdict is Verdict.INCONCLUSIVE


def test_without_a_control_only_the_control_is_missed(records: Any) -> None:
    """A lineage of another kind does not stand in for the control."""
    outcomes = tuple(
        replace(outcome, trial=replace(outcome.trial, kind=TrialKind.REFERENCE)) if not index else outcome
        for index, outcome in enumerate(records.outcomes())
    )
    assert records.judged(outcomes=outcomes).inconclusive[0].startswith("No control")


def test_a_restart_in_a_new_folder(records: Any) -> None:
    """A time in the output folder's name: the restart saves elsewhere, which is a doubt and not lost work."""

    def moved(state: tuple[Any, ...], folder: str) -> tuple[Any, ...]:
        """Put the checkpoints of a state below a folder that is named by the time."""
        return tuple(
            replace(file, path=f"{folder}/{file.path}", key=f"{{any}}/{file.key}")
            if file.role is FileRole.CHECKPOINT
            else file
            for file in state
        )

    lineage = records.lineage(3, 2)
    first, last = (life.crash_state for life in lineage.lives)
    lineage = records.altered(lineage, 0, crash_state=moved(first, "run-1"))
    both = (*moved(first, "run-1"), *moved(last, "run-2"))
    lineage = records.altered(lineage, 1, crash_state=both, first_step=1)
    judgement = records.judged(outcomes=(records.control(), lineage), kills_requested=1)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert any("new folder (run-2)" in text for text in judgement.inconclusive)


def test_an_unseen_writer_under_a_glob_of_any_depth(records: Any) -> None:
    """A checkpoint that `**` names is seen to be one."""
    target = replace(records.target, checkpoints=("**/ck.json",))
    outcomes = records.with_life(5, 1, unseen_writers=("ck.json",))
    judgement = records.judged(outcomes=outcomes, target=target)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "ck.json unseen" in judgement.inconclusive[0]


def not_run(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Stand for `lost_work` where no life shows its steps."""
    _ = reference, outcomes, target
    return CheckResult(check=CheckName.LOST_WORK, status=CheckStatus.NOT_RUN, reason="no steps")


@pytest.mark.parametrize(("saves", "is_doubt"), [((2,), True), ((0,), False)])
def test_a_recovery_that_nobody_saw(saves: tuple[int, ...], is_doubt: bool, records: Any) -> None:  # noqa: FBT001 - a parameter of a test
    """A restart after an acknowledged save must show where it went on; before the first save there is nothing to."""
    judgement = records.judged(
        outcomes=(records.control(), records.lineage(4, *saves)),
        kills_requested=1,
        checks={**ALL_CHECKS, CheckName.LOST_WORK: not_run},
    )
    texts = [text for text in judgement.inconclusive if text.startswith("Nothing shows from where the restarted job")]
    assert bool(texts) is is_doubt
    assert all("(no steps): the lives show their steps, but what they found was no content" in text for text in texts)
    silent = records.altered(records.lineage(4, *saves), 1, first_step=None)
    judgement = records.judged(
        outcomes=(records.control(), silent), kills_requested=1, checks={**ALL_CHECKS, CheckName.LOST_WORK: not_run}
    )
    texts = [text for text in judgement.inconclusive if text.startswith("Nothing shows from where the restarted job")]
    assert bool(texts) is is_doubt
    assert all("(no steps): print a line per step, or describe it with --step" in text for text in texts)


def test_no_kill_in_a_save(records: Any) -> None:
    """Kills were asked for in a save, and the one that landed struck in a step."""
    evidence = records.evidence(records.point(3), phase=Phase.STEP)
    outcomes = (records.control(), records.altered(records.lineage(4, 2), 0, evidence=evidence))
    judgement = records.judged(outcomes=outcomes, kills_requested=1)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "1 kill in a save was asked for, but none has landed in one" in judgement.inconclusive[0]
    saveless = replace(records.reference().profile, saves=())
    judgement = records.judged(reference=records.reference(profile=saveless), outcomes=outcomes, kills_requested=1)
    assert not any("landed in one" in text for text in judgement.inconclusive)


def test_a_kill_that_leaves_what_nobody_can_judge(records: Any) -> None:
    """A log of pickles with a torn tail after one of several kills is a doubt, although other kills were judged."""
    torn = records.file("ck.pt", "raw", is_whole=None, reason="it ends in a torn record")
    judgement = records.judged(outcomes=records.with_life(4, 0, crash_state=(torn,)))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "After 1 kill nobody can tell" in judgement.inconclusive[0]
    assert "ck.pt: it ends in a torn record" in judgement.inconclusive[0]


def test_the_planted_bug_comes_last(records: Any) -> None:
    """A more specific reason, the campaign's own included, stands before the canary's."""
    canary = records.altered(records.canary(), 0, crash_state=records.checkpoints(2))
    judgement = records.judged(canary=canary, causes=("The budget was spent.",))
    assert judgement.inconclusive[0] == "The budget was spent."
    assert "did not find the planted bug" in judgement.inconclusive[1]

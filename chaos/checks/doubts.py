"""What makes a campaign inconclusive: each function returns sentences that say what was not proven, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from chaos.checks.lineage import (
    crash_point_before,
    folders_begun_anew,
    is_completed,
    is_stopped,
    landed_strikes,
    of_role,
    restarts,
)
from chaos.checks.survival import unjudged_strikes
from chaos.checks.wording import counted, struck
from chaos.model import (
    SIGKILL,
    CheckName,
    CheckResult,
    CheckStatus,
    Evidence,
    FaultKind,
    FileRole,
    FileState,
    LifeEnd,
    LifeRecord,
    Outcome,
    Phase,
    Reference,
    Target,
    TrialKind,
    Violation,
)
from chaos.roles import anywhere, compile_globs

_MOST_NAMES = 5
_STRUCK = (TrialKind.FAULTED, TrialKind.EXPLORED)


def about_control(outcomes: Iterable[Outcome]) -> list[str]:
    """Doubt a campaign whose lineage without faults is missing or did not run to its end."""
    controls = [outcome for outcome in outcomes if outcome.trial.kind is TrialKind.CONTROL]
    if not controls:
        return ["No control was run: without a lineage that has no fault, a failure may be the target's own."]
    return [
        f"The control, which has no fault, did not run to its end ({_how_it_ended(outcome)}): "
        "mend the target, or raise its deadline, before any kill can say something."
        for outcome in controls
        if not is_completed(outcome)
    ]


def about_reference(reference: Reference) -> list[str]:
    """Doubt the final bits of a target that gives other bits in each uninterrupted run."""
    if reference.deterministic:
        return []
    names = f" (they differ in {_listed(reference.differing_tensors)})" if reference.differing_tensors else ""
    doubt = (
        f"Two uninterrupted runs ended with different bits{names}, so the final bits of an interrupted one prove "
        "nothing: seed every generator, and see torch.use_deterministic_algorithms."
    )
    return [doubt]


def about_kills(outcomes: Iterable[Outcome], requested: int, fault: FaultKind | None = None) -> list[str]:
    """Doubt a campaign with too few landed faults of a kind, and every planned one without evidence.

    So many were asked for of each kind; `fault` is the one kind that is asked about (None: all that were run).
    """
    faulted = [outcome for outcome in outcomes if outcome.trial.kind is TrialKind.FAULTED]
    landed = Counter(dict.fromkeys((fault,) if fault else {outcome.trial.fault: 0 for outcome in faulted}, 0))
    for outcome in faulted:
        landed[outcome.trial.fault] += outcome.kills_landed
    doubts = [
        f"Only {number} of the {counted(requested, kind, among=True)} asked for have landed."
        for kind, number in (landed or {FaultKind.KILL: 0}).items()
        if number < requested and fault in {None, kind}
    ]
    return doubts + [doubt for outcome in faulted for doubt in _without_evidence(outcome)]


def about_flips(outcomes: Iterable[Outcome]) -> list[str]:
    """Doubt damage at rest of which nothing was a flip: a file that was cut is noticed by whoever looks at its end."""
    strikes = landed_strikes([outcome for outcome in outcomes if outcome.trial.kind in _STRUCK])
    found = [strike.life.evidence for strike in strikes if strike.life.evidence is not None]
    damaged = [evidence for evidence in found if evidence.crash_point.fault is FaultKind.BIT_FLIP]
    if not damaged or any(" was cut from " not in evidence.damage for evidence in damaged):
        return []
    names = sorted({evidence.damaged.path for evidence in damaged if evidence.damaged is not None})
    doubt = (
        f"No bit could be flipped in {_listed(names) or 'any checkpoint'}: only cuts were tried, and nothing shows "
        "whether a changed number would be noticed."
    )
    return [doubt]


def _without_evidence(outcome: Outcome) -> list[str]:
    """Name the planned faults of one lineage for which nothing proves that they happened."""
    evidence = [life.evidence for life in outcome.lives if life.evidence is not None]
    missing = Counter(struck(point) for point in outcome.trial.crash_points)
    missing.subtract(struck(point) for point in outcome.unreached)
    missing.subtract(struck(item.crash_point) for item in evidence if item.is_landed or _found_nothing(item))
    return [
        f"Trial {outcome.trial.number}: nothing proves that the {point} took place."
        for point, count in missing.items()
        if count > 0
    ]


def _found_nothing(evidence: Evidence) -> bool:
    """Tell whether a fault came to its point and found nothing there to strike at: it is drawn anew."""
    fault = evidence.crash_point.fault
    return fault.is_error or (fault is FaultKind.BIT_FLIP and evidence.was_alive and evidence.root_signal == SIGKILL)


def about_save_kills(reference: Reference, outcomes: Iterable[Outcome]) -> list[str]:
    """Doubt a campaign that was asked for faults in a save, and in which none has struck there."""
    faulted = [outcome for outcome in outcomes if outcome.trial.kind is TrialKind.FAULTED]
    asked = [point for outcome in faulted for point in outcome.trial.crash_points if point.expected_phase is Phase.SAVE]
    phases = [strike.life.evidence.phase for strike in landed_strikes(faulted) if strike.life.evidence is not None]
    if not reference.profile.saves or not asked or Phase.SAVE in phases:
        return []
    doubt = (
        f"The target saves, and {counted(len(asked), asked[0].fault)} in a save "
        f"{'was' if len(asked) == 1 else 'were'} asked for, but none has landed in one: nothing shows that a save can "
        "be interrupted."
    )
    return [doubt]


def about_survival(reference: Reference, results: Iterable[CheckResult], fault: FaultKind) -> list[str]:
    """Doubt losses of power none of which came after an acknowledged save: then nothing could be lost."""
    survival = next((result for result in results if result.check is CheckName.NO_VALID_CHECKPOINT), None)
    has_acknowledged = any(life.acknowledgements for outcome in reference.outcomes for life in outcome.lives)
    is_open = survival is not None and survival.status is CheckStatus.NOT_RUN and has_acknowledged
    if fault is not FaultKind.POWER_LOSS or not is_open:
        return []
    return ["No loss of power came after an acknowledged save, so nothing that had to survive was lost: ask for more."]


def about_recovery(results: Iterable[CheckResult], outcomes: Iterable[Outcome]) -> list[str]:
    """Doubt a campaign with restarts after an acknowledged save of which nothing tells where they went on."""
    lost_work = next((result for result in results if result.check is CheckName.LOST_WORK), None)
    if lost_work is None or lost_work.status is not CheckStatus.NOT_RUN:
        return []
    faulted = [outcome for outcome in outcomes if outcome.trial.kind in _STRUCK and is_completed(outcome)]
    if not any(
        crash_point_before(restart) is not None
        and any(item.save >= 1 for item in restart.acknowledged)
        and not folders_begun_anew(restart)  # a doubt of its own
        for restart in restarts(faulted)
    ):
        return []
    is_shown = any(life.first_step is not None for outcome in faulted for life in outcome.lives[1:])
    what = (
        "the lives show their steps, but what they found was no content that the reference has saved: where a lineage "
        "ends with other bits, look for that first"
        if is_shown
        else "print a line per step, or describe it with --step"
    )
    return [f"Nothing shows from where the restarted job went on ({lost_work.reason}): {what}."]


def about_endings(outcomes: Iterable[Outcome], violations: Collection[Violation]) -> list[str]:
    """Doubt every lineage that did not run to its end though no check says what is wrong with it.

    A life that refuses to start from a checkpoint that was damaged at rest does well, unless a check says otherwise.
    """
    blamed = {violation.trial for violation in violations}
    return [
        f"Trial {outcome.trial.number} did not run to its end ({_how_it_ended(outcome)}), and no check says why."
        for outcome in outcomes
        if outcome.trial.kind in _STRUCK
        and outcome.trial.number not in blamed
        and not is_completed(outcome)
        and not is_stopped(outcome)
        and not _refuses_damage(outcome)
    ]


def _refuses_damage(outcome: Outcome) -> bool:
    """Tell whether the last life of a lineage ended with an error of its own after a checkpoint had been damaged."""
    if len(outcome.lives) < 2 or outcome.lives[-1].end is not LifeEnd.EXITED:  # noqa: PLR2004 - two: the damaged one's
        return False
    evidence = outcome.lives[-2].evidence
    return evidence is not None and evidence.is_landed and evidence.crash_point.fault is FaultKind.BIT_FLIP


def about_canary(canary: Outcome | None, survival: CheckResult, exactness: CheckResult | None) -> list[str]:
    """Doubt the checks themselves when they did not find the bug planted in the canary.

    `survival` and `exactness` are what those checks said of the canary alone; the second is None where final bits
    cannot be judged.
    """
    if canary is None or not canary.lives:
        return [
            "The canary, a trial with a planted bug that must be found, was not run: nothing shows that checks work."
        ]
    first, last = canary.lives[0].number, canary.lives[-1].number
    missed = []
    if not any(violation.life == first for violation in survival.violations):
        missed.append("checkpoints destroyed in its first life")
    doubts = []
    if exactness is not None and not is_completed(canary):
        doubts.append(
            f"The canary did not run to its end ({_how_it_ended(canary)}), so no wrong bit could be planted in its "
            "final file: nothing shows that one would be found."
        )
    elif exactness is not None and not any(violation.life == last for violation in exactness.violations):
        missed.append("a bit flipped in its final file")
    if missed:
        bugs = " and ".join(missed)
        doubts.append(
            f"The checks of this campaign did not find the planted bug ({bugs}): nothing that they passed counts."
        )
    return doubts


def about_saves(reference: Reference, outcomes: Iterable[Outcome], target: Target) -> list[str]:
    """Doubt a campaign in which no save, no checkpoint, or none that can be judged was ever seen."""
    lives = _lives(reference, outcomes)
    globs = " ".join(target.checkpoints)
    files = [file for life in lives for file in _checkpoints(life)]
    if not files:
        return [f"No file that matches {globs} was ever seen: does the target save, and is this where it saves to?"]
    doubts = []
    if not any(life.acknowledgements for life in lives):
        doubts.append(
            "No save was ever acknowledged, so nothing says which checkpoint had to survive: print a line after each "
            "save and describe it with `saved`."
        )
    if not any(file.is_whole for file in files):  # not even in the run without a kill
        doubts.append(
            f"Nobody can tell whether a file that matches {globs} is whole ({_with_reason(files)}): "
            "give a `verify` command."
        )
    elif unjudged := unjudged_strikes(reference, outcomes):
        left = of_role(unjudged[0].life.crash_state, FileRole.CHECKPOINT)
        doubts.append(
            f"After {counted(len(unjudged), unjudged[0].fault)} nobody can tell whether a whole checkpoint was left "
            f"({_with_reason(left)}): give a `verify` command."
        )
    return doubts


def _with_reason(files: Collection[FileState]) -> str:
    """Name one of the files of which nobody can tell whether it is whole, and say why."""
    file = next((file for file in files if file.is_whole is None), next(iter(files)))
    return f"{file.path}: {file.reason or 'unknown format'}"


def about_observation(reference: Reference, outcomes: Iterable[Outcome], target: Target) -> list[str]:
    """Doubt what was written, or called, past the eyes of the harness."""
    lives = _lives(reference, outcomes)
    ignored = compile_globs(tuple(anywhere(glob) for glob in target.ignore))
    unseen = sorted({name for life in lives for name in life.unseen_writers if not ignored.fullmatch(name)})
    foreign = sum(life.foreign_calls for life in lives)
    doubts = []
    if unseen:
        doubts.append(
            f"Something wrote {_listed(unseen)} unseen (a shared mapping, or a process outside of the life): "
            "exact claims about these files cannot be made. What is no part of the training's state may be named in "
            "`ignore`."
        )
    if foreign:
        doubts.append(
            f"{foreign} system calls of the target could not be followed: they came through a foreign interface "
            "(32-bit or x32), from another root, mount namespace or user, or from a process that is closed to us."
        )
    return doubts


def about_new_folders(outcomes: Iterable[Outcome]) -> list[str]:
    """Doubt a target whose restarts save into folders of their own: from where it should resume is not known."""
    begun = sorted({name for restart in restarts(outcomes) for name in folders_begun_anew(restart)})
    if not begun:
        return []
    doubt = (
        f"A restart saves into a new folder ({_listed(begun)}) instead of going on in the old one, so whether it "
        "resumed cannot be judged: give the run a fixed name, or a `resume_command` that names the old folder."
    )
    return [doubt]


def _lives(reference: Reference, outcomes: Iterable[Outcome]) -> list[LifeRecord]:
    return [life for outcome in (*reference.outcomes, *outcomes) for life in outcome.lives]


def _checkpoints(life: LifeRecord) -> tuple[FileState, ...]:
    """Return the checkpoints of a life in every state in which they were looked at."""
    states = (life.crash_state, *(item.files for item in life.acknowledgements))
    return tuple(file for state in states for file in of_role(state, FileRole.CHECKPOINT))


def _how_it_ended(outcome: Outcome) -> str:
    """Say in a few words how the last life of a lineage ended."""
    if not outcome.lives:
        return "it has no life"
    life = outcome.lives[-1]
    how = {
        LifeEnd.EXITED: f"exit status {life.exit_status}",
        LifeEnd.STRUCK: "killed by us, and not started again",
        LifeEnd.SIGNALLED: f"ended by signal {life.signal}",
        LifeEnd.STOPPED: "stopped early",
        LifeEnd.DEADLINE: "still running at its deadline",
        LifeEnd.NOT_STARTED: "it could not be started",
    }[life.end]
    interrupted = f", {life.interrupted_calls} calls interrupted by a signal handler" if life.interrupted_calls else ""
    lines = [line.strip() for line in life.output_tail.splitlines() if line.strip()]
    said = f"; last line: {lines[-1]}" if lines else ""
    return f"life {life.number}: {how}{interrupted}{said}"


def _listed(names: Collection[str]) -> str:
    """List names, at most a few."""
    shown = list(names)[:_MOST_NAMES]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")

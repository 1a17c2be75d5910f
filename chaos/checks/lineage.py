"""What the checks ask of a lineage: its faults, what was acknowledged before them, whether it ran to its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chaos.model import (
    Acknowledgement,
    CheckName,
    CheckResult,
    CheckStatus,
    CrashPoint,
    FaultKind,
    FileRole,
    FileState,
    LifeEnd,
    LifeRecord,
    Outcome,
    Record,
    Violation,
)


class Strike(Record, kw_only=True):
    """One landed fault: its lineage, the life that met it, and every acknowledgement of the lineage until its end.

    A life that was killed ended there; one that met an error went on.
    """

    trial: int
    life: LifeRecord
    crash_point: CrashPoint
    acknowledged: tuple[Acknowledgement, ...]

    @property
    def fault(self) -> FaultKind:
        """Return the kind of the fault."""
        return self.crash_point.fault


class Restart(Record, kw_only=True):
    """One later life, the life before it, and every acknowledgement of the lineage before it began."""

    trial: int
    before: LifeRecord
    life: LifeRecord
    acknowledged: tuple[Acknowledgement, ...]


def landed_strikes(outcomes: Iterable[Outcome]) -> Iterator[Strike]:
    """Yield every landed fault, in the order of the lineages and their lives."""
    for outcome in outcomes:
        acknowledged: tuple[Acknowledgement, ...] = ()
        for life in outcome.lives:
            acknowledged += life.acknowledgements
            if life.evidence is not None and life.evidence.is_landed:
                yield Strike(
                    trial=outcome.trial.number,
                    life=life,
                    crash_point=life.evidence.crash_point,
                    acknowledged=acknowledged,
                )


def folders_begun_anew(restart: Restart) -> tuple[str, ...]:
    """Return the folders, with a token in their names that varies from run to run, that a later life saves into.

    They hold checkpoints after it and did not before it, though there were some elsewhere: this life did not look for
    what an earlier one had saved, because it has an output folder of its own.
    """
    before = {_folder(file) for file in of_role(restart.before.crash_state, FileRole.CHECKPOINT)}
    after = of_role(restart.life.crash_state, FileRole.CHECKPOINT)
    varying = {_folder(file) for file in after if "{any}" in file.key.rpartition("/")[0]}
    return tuple(sorted(varying - before)) if before else ()


def _folder(file: FileState) -> str:
    return file.path.rpartition("/")[0]


def restarts(outcomes: Iterable[Outcome]) -> Iterator[Restart]:
    """Yield every later life, in the order of the lineages and their lives."""
    for outcome in outcomes:
        acknowledged: tuple[Acknowledgement, ...] = ()
        for before, life in zip(outcome.lives, outcome.lives[1:], strict=False):
            acknowledged += before.acknowledgements
            yield Restart(trial=outcome.trial.number, before=before, life=life, acknowledged=acknowledged)


def is_completed(outcome: Outcome) -> bool:
    """Tell whether the lineage's last life ended by itself with exit status 0."""
    return bool(outcome.lives) and outcome.lives[-1].end is LifeEnd.EXITED and outcome.lives[-1].exit_status == 0


def is_stopped(outcome: Outcome) -> bool:
    """Tell whether the lineage's last life was stopped early, beside a twin whose end would have been its own."""
    return bool(outcome.lives) and outcome.lives[-1].end is LifeEnd.STOPPED


def is_interrupted(outcome: Outcome) -> bool:
    """Tell whether a failed life had held calls taken away by signals: then its failure may be of our making."""
    last = outcome.lives[-1]
    has_failed = last.end is LifeEnd.SIGNALLED or (last.end is LifeEnd.EXITED and last.exit_status != 0)
    return has_failed and last.interrupted_calls > 0


def is_clean(outcome: Outcome) -> bool:
    """Tell whether a trial ended well (or as its twin), with the reference's bits, so that nobody needs its files."""
    has_ended = is_completed(outcome) or is_stopped(outcome)
    return has_ended and not outcome.differences and not outcome.unreached


def last_strike(outcome: Outcome) -> Strike | None:
    """Return the lineage's last landed fault (None: nothing was injected)."""
    return next(reversed(tuple(landed_strikes((outcome,)))), None)


def last_crash_point(outcome: Outcome) -> CrashPoint | None:
    """Return the crash point of the lineage's last landed fault (None: nothing was injected)."""
    strike = last_strike(outcome)
    return None if strike is None else strike.crash_point


def met_error(life: LifeRecord) -> bool:
    """Tell whether a life was given an error to deal with."""
    evidence = life.evidence
    return evidence is not None and evidence.is_landed and evidence.crash_point.fault.is_error


def without_damaged(life: LifeRecord) -> tuple[FileState, ...]:
    """Return the files that a life left, without the checkpoint that was damaged then, by whatever name it goes."""
    damaged = life.evidence.damaged if life.evidence is not None else None
    if damaged is None:
        return life.crash_state
    spoilt = {file.digest for file in life.crash_state if file.path == damaged.path}
    return tuple(file for file in life.crash_state if file.path != damaged.path and file.digest not in spoilt)


def crash_point_before(restart: Restart) -> CrashPoint | None:
    """Return the crash point of the fault that this restart followed (None: the life before ended otherwise)."""
    return crash_point_of(restart.before)


def crash_point_of(life: LifeRecord) -> CrashPoint | None:
    """Return where a fault landed in a life (None: none did)."""
    evidence = life.evidence
    return evidence.crash_point if evidence is not None and evidence.is_landed else None


def of_role(files: Iterable[FileState], role: FileRole) -> tuple[FileState, ...]:
    """Return the files of one role."""
    return tuple(file for file in files if file.role is role)


def whole_checkpoints(files: Iterable[FileState]) -> tuple[FileState, ...]:
    """Return the checkpoints that are known to be whole."""
    return tuple(file for file in of_role(files, FileRole.CHECKPOINT) if file.is_whole is True)


def counterpart(file: FileState, among: Iterable[FileState]) -> FileState | None:
    """Return the file of the same path, or the only one of the same key and role, or None."""
    candidates = [other for other in among if other.role is file.role and other.key == file.key]
    for other in candidates:
        if other.path == file.path:
            return other
    return candidates[0] if len(candidates) == 1 else None


def describe(files: Iterable[FileState]) -> str:
    """Name files with their sizes and what is wrong with them, for a violation's detail."""
    return "; ".join(_describe_one(file) for file in files) or "no such file"


def _describe_one(file: FileState) -> str:
    state = {True: "whole", False: "damaged", None: "cannot be judged"}[file.is_whole]
    reason = f": {file.reason}" if file.reason else ""
    return f"{file.path} ({file.size_bytes:,} bytes, {state}{reason})"


def conclude(check: CheckName, judged: int, violations: Iterable[Violation], not_run: str) -> CheckResult:
    """Return the result of a check that had `judged` cases; with none it was not run, for the reason `not_run`."""
    found = tuple(violations)
    if found:
        return CheckResult(check=check, status=CheckStatus.FAILED, violations=found)
    if judged == 0:
        return CheckResult(check=check, status=CheckStatus.NOT_RUN, reason=not_run)
    return CheckResult(check=check, status=CheckStatus.PASSED)

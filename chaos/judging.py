"""From a journal to the verdict: the same for `chaos run`, `chaos judge` and `chaos run --continue`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from chaos.attribution import with_diagnoses
from chaos.checks import ALL_CHECKS, Check
from chaos.coverage import Coverage, coverage_of
from chaos.early_stop import with_end_of_twin
from chaos.errors import UsageError
from chaos.explored import doubts_about, outcomes_of, points_of, summarize
from chaos.fingerprints import fingerprint_of, with_fingerprint
from chaos.journal import (
    CampaignEnded,
    CampaignStarted,
    Event,
    ReferenceRecorded,
    TrialDiscarded,
    TrialFinished,
    TrialRepeated,
    TrialsPlanned,
)
from chaos.model import (
    CheckName,
    CheckResult,
    CheckStatus,
    FaultKind,
    FileRole,
    Outcome,
    Phase,
    Record,
    Reference,
    TargetProfile,
    TrialKind,
    Verdict,
)
from chaos.reports.result import CampaignFacts, Result, build_result
from chaos.runs import name_to_type
from chaos.settings import LivesKind
from chaos.verdict import Judgement, judge

_NO_REFERENCE = Reference(outcomes=(), profile=TargetProfile(), final=(), deterministic=False)


class Judged(Record, kw_only=True):
    """A judgement with the result made from it, and what they rest on (`reference` is None where there was none)."""

    judgement: Judgement
    result: Result
    reference: Reference | None
    outcomes: tuple[Outcome, ...]


def judge_events(events: tuple[Event, ...], folder: Path, *, checks: Mapping[CheckName, Check] = ALL_CHECKS) -> Judged:
    """Judge a campaign by its journal's events; UsageError where it never began."""
    started = next((event for event in events if isinstance(event, CampaignStarted)), None)
    if started is None:
        message = f"the journal in {folder} holds no campaign"
        raise UsageError(message, hint="start a new one with `chaos run`")
    ended = next((event for event in reversed(events) if isinstance(event, CampaignEnded)), None)
    facts = CampaignFacts(
        seed=started.seed,
        run_name=started.run,
        run_dir=str(folder),
        target=started.scenario.target,
        scenario=started.scenario.name,
        claim=started.scenario.claim,
        mode=started.mode,
        lives=lives_of(events),
        without_fsync=started.without_fsync,
        repeated=sum(isinstance(event, TrialRepeated) for event in events),
        elapsed_s=ended.elapsed_s if ended else 0.0,
    )
    causes = list(
        ended.causes
        if ended
        else (f"the campaign was interrupted: go on with `chaos run --continue {name_to_type(folder)}`",)
    )
    discarded = sum(isinstance(event, TrialDiscarded) for event in events)
    recorded = next((event for event in events if isinstance(event, ReferenceRecorded)), None)
    finished = {event.outcome.trial.number: event.outcome for event in events if isinstance(event, TrialFinished)}
    everything = tuple(finished[number] for number in sorted(finished))
    if recorded is None:
        judgement = _without_reference(started, tuple(causes))
        result = build_result(judgement, facts, _NO_REFERENCE, (), Coverage())
        if started.exploration is not None:
            asked = started.exploration
            nothing = summarize((), (), (), asked)
            result = msgspec.structs.replace(result, exploration=nothing)
        return Judged(judgement=judgement, result=result, reference=None, outcomes=())
    reference = complete(recorded.reference, everything)
    judged = tuple(o for o in everything if o.trial.kind in (TrialKind.CONTROL, TrialKind.FAULTED))
    plan = started.exploration
    by_kind: dict[FaultKind, tuple[str, ...]] = {}
    points = points_of(events, plan.saves) if plan is not None else ()
    if plan is not None:
        judged += outcomes_of(points)
        by_kind = doubts_about(points, events, started.scenario.kinds)
    judged = tuple(with_end_of_twin(outcome, finished) for outcome in judged)
    judgement = judge(
        reference,
        judged,
        next((outcome for outcome in everything if outcome.trial.kind is TrialKind.CANARY), None),
        started.scenario.target,
        run_name=name_to_type(folder),
        kills_requested=started.kills,
        kinds=started.scenario.kinds,
        strict=started.strict,
        expect=started.scenario.expect,
        causes=tuple(causes),
        causes_by_kind=by_kind,
        checks=checks,
    )
    findings = with_diagnoses(judgement.findings, reference, judged)
    findings = with_fingerprint(findings, fingerprint_of(reference, everything))
    judgement = msgspec.structs.replace(judgement, findings=findings)
    violations = tuple(violation for check in judgement.checks for violation in check.violations)
    recovery = tuple(p for event in events if isinstance(event, TrialsPlanned) for p in event.recovery_points)
    killed = tuple(outcome for outcome in judged if outcome.trial.fault is FaultKind.KILL)
    of_kills = [v for v in violations if v.crash_point is None or v.crash_point.fault is FaultKind.KILL]
    coverage = coverage_of((*recorded.points, *recovery), reference, killed, of_kills, mode=started.mode)
    result = build_result(judgement, facts, reference, judged, coverage)
    result = msgspec.structs.replace(result, trials_discarded=discarded)
    if plan is not None:
        explored = summarize(points, violations, events, plan, started.scenario.kinds)
        result = msgspec.structs.replace(result, exploration=explored)
    return Judged(judgement=judgement, result=result, reference=reference, outcomes=judged)


def lives_of(events: tuple[Event, ...]) -> LivesKind:
    """Return how lives were started after the references: as asked for, but fresh where the target uses CUDA."""
    asked = next((event.lives for event in events if isinstance(event, CampaignStarted)), LivesKind.FRESH)
    uses_cuda = any(isinstance(event, ReferenceRecorded) and event.uses_cuda for event in events)
    return LivesKind.FRESH if uses_cuda else asked


def _without_reference(started: CampaignStarted, causes: tuple[str, ...]) -> Judgement:
    """Judge a campaign that has no reference: nothing was checked, nothing is known."""
    reason = "there is no reference to judge by"
    return Judgement(
        verdict=Verdict.INCONCLUSIVE,
        verdicts=dict.fromkeys(started.scenario.kinds, Verdict.INCONCLUSIVE),
        as_expected=started.scenario.expect.verdict is Verdict.INCONCLUSIVE,
        expect=started.scenario.expect,
        is_strict=started.strict,
        findings=(),
        checks=tuple(CheckResult(check=name, status=CheckStatus.NOT_RUN, reason=reason) for name in CheckName),
        inconclusive=causes,
        kills_requested=started.kills * len(started.scenario.kinds),
        kills_landed=0,
        kills_by_phase=dict.fromkeys(Phase, 0),
    )


def complete(reference: Reference, outcomes: tuple[Outcome, ...]) -> Reference:
    """Add to the reference what later trials without faults showed.

    The control ran with everything that the references taught, so its looks at the checkpoints leave out the leaves
    that vary: it takes the first reference's place as the order of the saves. The run that does not save gives its
    final files.
    """
    control = next((o for o in outcomes if o.trial.kind is TrialKind.CONTROL), None)
    if control is not None and control.lives[-1].exit_status == 0:
        reference = msgspec.structs.replace(reference, outcomes=(control, *reference.outcomes[1:]))
    no_save = next((o for o in outcomes if o.trial.kind is TrialKind.NO_SAVE), None)
    if no_save is not None:
        final = tuple(state for state in no_save.lives[-1].crash_state if state.role is FileRole.FINAL)
        reference = msgspec.structs.replace(reference, no_save_final=final)
    return reference

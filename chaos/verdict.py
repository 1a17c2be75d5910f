"""From records to a verdict: the checks' violations become findings, doubts make it inconclusive; pure.

The order of merging is fail, inconclusive, pass: a rule that was seen broken is broken whatever else was not proven.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec
import xxhash

from chaos.checks import ALL_CHECKS, Check, doubts
from chaos.checks.lineage import landed_strikes
from chaos.checks.severity import severity_of
from chaos.model import (
    CheckName,
    CheckResult,
    CheckStatus,
    Evidence,
    Expect,
    FaultKind,
    Finding,
    Outcome,
    Phase,
    Record,
    Reference,
    Severity,
    Target,
    TrialKind,
    Verdict,
    Violation,
)

NO_FAULT = "no fault"
_ORDER = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL)
_EXIT_STATUS = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 4}


class Judgement(Record, kw_only=True):
    """What a campaign comes to; `inconclusive` are the sentences that say what was not proven.

    `verdicts` has one for each kind of fault, judged by itself beside the lineages without any; `verdict` is the
    gravest of them. `kills_by_phase` has all phases and counts where the faults really landed. `is_strict` says that
    warnings fail too.
    """

    verdict: Verdict
    verdicts: dict[FaultKind, Verdict]
    as_expected: bool
    expect: Expect
    is_strict: bool
    findings: tuple[Finding, ...]
    checks: tuple[CheckResult, ...]
    inconclusive: tuple[str, ...]
    kills_requested: int
    kills_landed: int
    kills_by_phase: dict[Phase, int]
    landed_by_fault: dict[FaultKind, int] = msgspec.field(default_factory=dict)


def judge(  # noqa: PLR0913 - a verdict rests on everything that was asked and seen, and each is named
    reference: Reference,
    outcomes: tuple[Outcome, ...],
    canary: Outcome | None,
    target: Target,
    *,
    run_name: str,
    kills_requested: int,
    kinds: tuple[FaultKind, ...] = (FaultKind.KILL,),
    strict: bool = False,
    expect: Expect | None = None,
    causes: tuple[str, ...] = (),
    causes_by_kind: Mapping[FaultKind, tuple[str, ...]] = MappingProxyType({}),
    checks: Mapping[CheckName, Check] = ALL_CHECKS,
) -> Judgement:
    """Judge a campaign: `outcomes` are the control's and the faulted lineages, `causes` further reasons for doubt.

    Each of `kinds` is judged by itself, with `kills_requested` faults of it asked for; `causes_by_kind` are the reasons
    to doubt one kind alone.
    """
    outcomes = tuple(sorted(outcomes, key=lambda outcome: outcome.trial.number))
    # Last: where one of the others stands, it is why the planted bug was not found.
    shared = (*causes, *_about_canary(reference, canary, target, checks))
    judged = [
        _judge_kind(
            kind,
            reference,
            outcomes,
            target,
            kills_requested,
            checks,
            run_name=run_name,
            causes=causes_by_kind.get(kind, ()),
        )
        for kind in kinds
    ]
    verdicts = {kind.fault: kind.verdict(strict=strict, shared=shared) for kind in judged}
    findings = in_order(finding for kind in judged for finding in kind.findings)
    verdict = merge(verdicts.values())
    expected = expect if expect is not None else Expect()
    by_phase = kills_by_phase(outcomes)
    return Judgement(
        verdict=verdict,
        verdicts=verdicts,
        as_expected=is_as_expected(expected, verdict, findings, verdicts),
        expect=expected,
        is_strict=strict,
        findings=findings,
        checks=_merged([kind.results for kind in judged]),
        inconclusive=(*_by_kind(judged), *shared),
        kills_requested=kills_requested * len(kinds),
        kills_landed=sum(by_phase.values()),
        kills_by_phase=by_phase,
        landed_by_fault={kind: sum(kills_by_phase(_of_kind(kind, outcomes)).values()) for kind in kinds},
    )


def _of_kind(fault: FaultKind, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Return the lineages with faults of one kind, and those without any, which are everybody's."""
    return tuple(o for o in outcomes if o.trial.fault is fault or not o.trial.crash_points)


def _by_kind(judged: Sequence[_JudgedKind]) -> Iterator[str]:
    """Yield the doubts about each kind, with its name, unless all kinds share them."""
    everybodys = {reason for reason in judged[0].reasons if all(reason in kind.reasons for kind in judged)}
    yield from (reason for reason in judged[0].reasons if reason in everybodys)
    for kind in judged:
        yield from (f"{kind.fault}: {reason}" for reason in kind.reasons if reason not in everybodys)


class _JudgedKind(Record, kw_only=True):
    """What the lineages with faults of one kind, and those without any, come to."""

    fault: FaultKind
    results: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...]

    def verdict(self, *, strict: bool, shared: Collection[str]) -> Verdict:
        """Return the verdict, given the reasons for doubt that all kinds share."""
        failing = [finding for finding in self.findings if strict or finding.severity is Severity.ERROR]
        is_in_doubt = bool(self.reasons or shared)
        return merge((Verdict.FAIL if failing else Verdict.PASS, Verdict.INCONCLUSIVE if is_in_doubt else Verdict.PASS))


def _judge_kind(
    fault: FaultKind,
    reference: Reference,
    outcomes: tuple[Outcome, ...],
    target: Target,
    kills_requested: int,
    checks: Mapping[CheckName, Check],
    *,
    run_name: str,
    causes: tuple[str, ...],
) -> _JudgedKind:
    """Judge the lineages of one kind of fault."""
    mine = tuple(outcome for outcome in _of_kind(fault, outcomes) if not _is_undamaged(outcome))
    results = tuple(check(reference, mine, target) for check in checks.values())
    violations = [violation for result in results for violation in result.violations]
    reasons = (
        *doubts.about_control(mine),
        *doubts.about_reference(reference),
        *doubts.about_kills(mine, kills_requested, fault),
        *doubts.about_save_kills(reference, mine),
        *doubts.about_flips(mine),
        *doubts.about_endings(mine, violations),
        *doubts.about_saves(reference, mine, target),
        *doubts.about_observation(reference, mine, target),
        *doubts.about_new_folders(mine),
        *doubts.about_survival(reference, results, fault),
        # From a damaged checkpoint nobody should go on; what came of it has a check of its own.
        *(doubts.about_recovery(results, mine) if fault is not FaultKind.BIT_FLIP else ()),
        *causes,
    )
    return _JudgedKind(fault=fault, results=results, findings=findings_of(violations, run_name, mine), reasons=reasons)


def _is_undamaged(outcome: Outcome) -> bool:
    """Tell whether a checkpoint was to be damaged and none was: the kill alone is no case of that kind."""
    evidence = [life.evidence for life in outcome.lives if life.evidence is not None]
    return any(item.crash_point.fault is FaultKind.BIT_FLIP and not item.is_landed for item in evidence)


def _merged(results: Sequence[tuple[CheckResult, ...]]) -> tuple[CheckResult, ...]:
    """Put the results of each check over all kinds of faults together: failed, passed, or not run at all."""
    merged = []
    for several in zip(*results, strict=True):
        violations = tuple(dict.fromkeys(violation for result in several for violation in result.violations))
        statuses = {result.status for result in several}
        order = (CheckStatus.FAILED, CheckStatus.PASSED, CheckStatus.NOT_RUN)
        status = next(status for status in order if status in statuses)
        reason = several[0].reason if status is CheckStatus.NOT_RUN else ""
        merged.append(CheckResult(check=several[0].check, status=status, reason=reason, violations=violations))
    return tuple(merged)


def violations_of(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> tuple[Violation, ...]:
    """Return every broken rule in `outcomes`, before findings are made of them."""
    return tuple(
        violation for check in ALL_CHECKS.values() for violation in check(reference, outcomes, target).violations
    )


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the gravest of several verdicts: fail, then inconclusive, then pass (of none: pass)."""
    return max(verdicts, key=_ORDER.index, default=Verdict.PASS)


def kills_by_phase(outcomes: Iterable[Outcome]) -> dict[Phase, int]:
    """Count the landed kills of the faulted lineages by the phase in which they really struck."""
    counts = dict.fromkeys(Phase, 0)
    for outcome in outcomes:
        if outcome.trial.kind is TrialKind.FAULTED:
            for kill in landed_strikes((outcome,)):
                if kill.life.evidence is not None:
                    counts[kill.life.evidence.phase] += 1
    return counts


def findings_of(
    violations: Iterable[Violation], run_name: str, outcomes: Iterable[Outcome] = ()
) -> tuple[Finding, ...]:
    """Make one finding of all violations of one check at one kind of place; errors first, then in the order of checks.

    Of a loss of power, whose states can show anywhere, the kind of place is what is missing, as `outcomes` tell it. The
    violation of the earliest trial stands for the others, whatever order they come in.
    """
    known = tuple(outcomes)
    missing = {
        (outcome.trial.number, life.evidence.crash_point): _missing(life.evidence)
        for outcome in known
        for life in outcome.lives
        if life.evidence is not None
    }
    own = {(outcome.trial.number, point) for outcome in known for point in outcome.trial.crash_points}
    groups: dict[tuple[str, ...], list[Violation]] = {}
    # First what a replay of the trial shows: a state that was explored stands for other points, too.
    for violation in sorted(violations, key=lambda v: ((v.trial, v.crash_point) not in own, *_by_place(v))):
        lacks = missing.get((violation.trial, violation.crash_point)) if violation.crash_point is not None else None
        groups.setdefault(_kind_of_place(violation, lacks or ()), []).append(violation)
    findings = [_finding(kind, group, run_name) for kind, group in groups.items()]
    return in_order(findings)


def _missing(evidence: Evidence) -> tuple[str, ...]:
    """Return what a loss of power shows to be missing, and before which operation, whatever save it is in."""
    items = evidence.loss.not_durable if evidence.loss is not None else ()
    return tuple(sorted({f"{item.missing}, {item.published_by.rpartition(': ')[2]}" for item in items}))


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings, each once: errors first, then in the order of checks."""
    order = list(CheckName)
    return tuple(
        sorted(
            dict.fromkeys(findings), key=lambda found: (found.severity is not Severity.ERROR, order.index(found.check))
        )
    )


def _by_place(violation: Violation) -> tuple[int, int, str, str]:
    return (violation.trial, violation.life, violation.check, violation.detail)


def _kind_of_place(violation: Violation, missing: tuple[str, ...]) -> tuple[str, ...]:
    """Return what two violations share when they are one finding: check, phase, call and file, or what is missing."""
    point = violation.crash_point
    if point is None:
        return (violation.check,)
    if missing:
        return (violation.check, point.fault, *missing)
    return (violation.check, point.fault, point.expected_phase, point.address.call, point.address.file)


def _finding(kind_of_place: tuple[str, ...], group: list[Violation], run_name: str) -> Finding:
    """Make a finding of the violations of one kind of place, in their order."""
    first = group[0]
    point = first.crash_point
    where = str(point) if point is not None else NO_FAULT
    phase = point.expected_phase if point is not None else ""
    place = f"{point.address}, {point.tear_offset}" if point is not None else ""
    kind = "" if point is None or point.fault is FaultKind.KILL else f"|{point.fault}"
    if point is not None and point.fault is FaultKind.POWER_LOSS:
        phase, place = "", "|".join(kind_of_place)
    return Finding(
        id=xxhash.xxh3_64_hexdigest(f"{first.check}|{phase}|{place}{kind}".encode())[:10],
        check=first.check,
        fault=point.fault if point is not None else None,
        severity=severity_of(first.check),
        trial=first.trial,
        life=first.life,
        crash_point=where,
        step=first.step,
        detail=first.detail,
        replay=f"chaos replay {run_name}/{first.trial}",
        seen=len(group),
    )


def _about_canary(
    reference: Reference, canary: Outcome | None, target: Target, checks: Mapping[CheckName, Check]
) -> list[str]:
    """Run on the canary the two checks that must find the bugs planted in it."""
    alone = () if canary is None else (canary,)
    survival = checks[CheckName.NO_VALID_CHECKPOINT](reference, alone, target)
    exactness = checks[CheckName.SILENT_DIVERGENCE](reference, alone, target) if reference.deterministic else None
    return doubts.about_canary(canary, survival, exactness)


def is_as_expected(
    expect: Expect, verdict: Verdict, findings: Iterable[Finding], verdicts: Mapping[FaultKind, Verdict] | None = None
) -> bool:
    """Tell whether a campaign came out as expected; warnings are expected by nobody and surprise nobody.

    Of the verdicts by kind of fault only those count whose kind was asked for.
    """
    by_kind = verdicts if verdicts is not None else {}
    if verdict is not expect.verdict or any(
        by_kind.get(kind, want) is not want for kind, want in expect.verdicts.items()
    ):
        return False
    if verdict is not Verdict.FAIL or not (expect.findings or expect.allow):
        return True
    seen = {finding.check for finding in findings}
    errors = {finding.check for finding in findings if finding.severity is Severity.ERROR}
    is_named = not expect.findings or bool(seen & set(expect.findings))
    return is_named and errors <= {*expect.findings, *expect.allow}


def exit_status(judgement: Judgement) -> int:
    """Return the exit status: 0, 1 or 4 by the verdict; where a failure is expected, 0 if it came, else 1."""
    if judgement.expect.verdict is Verdict.FAIL:
        return 0 if judgement.as_expected else 1
    return _EXIT_STATUS[judgement.verdict]

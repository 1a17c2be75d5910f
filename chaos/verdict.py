"""From records to a verdict: the checks' violations become findings, doubts make it inconclusive; pure.

The order of merging is fail, inconclusive, pass: a rule that was seen broken is broken whatever else was not proven.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import xxhash

from chaos.checks import ALL_CHECKS, Check, doubts
from chaos.checks.lineage import landed_kills
from chaos.checks.severity import severity_of
from chaos.model import (
    CheckName,
    CheckResult,
    Expect,
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

    `kills_by_phase` has all phases and counts where the kills really landed. `is_strict` says that warnings fail too.
    """

    verdict: Verdict
    as_expected: bool
    expect: Expect
    is_strict: bool
    findings: tuple[Finding, ...]
    checks: tuple[CheckResult, ...]
    inconclusive: tuple[str, ...]
    kills_requested: int
    kills_landed: int
    kills_by_phase: dict[Phase, int]


def judge(  # noqa: PLR0913 - a verdict rests on everything that was asked and seen, and each is named
    reference: Reference,
    outcomes: tuple[Outcome, ...],
    canary: Outcome | None,
    target: Target,
    *,
    run_name: str,
    kills_requested: int,
    strict: bool = False,
    expect: Expect | None = None,
    causes: tuple[str, ...] = (),
    checks: Mapping[CheckName, Check] = ALL_CHECKS,
) -> Judgement:
    """Judge a campaign: `outcomes` are the control's and the faulted lineages, `causes` further reasons for doubt."""
    outcomes = tuple(sorted(outcomes, key=lambda outcome: outcome.trial.number))
    results = tuple(check(reference, outcomes, target) for check in checks.values())
    violations = [violation for result in results for violation in result.violations]
    findings = findings_of(violations, run_name)
    reasons = (
        *doubts.about_control(outcomes),
        *doubts.about_reference(reference),
        *doubts.about_kills(outcomes, kills_requested),
        *doubts.about_save_kills(reference, outcomes),
        *doubts.about_endings(outcomes, violations),
        *doubts.about_saves(reference, outcomes, target),
        *doubts.about_observation(reference, outcomes, target),
        *doubts.about_new_folders(outcomes),
        *doubts.about_recovery(results, outcomes),
        *causes,
        # Last: where one of the others stands, it is why the planted bug was not found.
        *_about_canary(reference, canary, target, checks),
    )
    failing = [finding for finding in findings if strict or finding.severity is Severity.ERROR]
    verdict = merge((Verdict.FAIL if failing else Verdict.PASS, Verdict.INCONCLUSIVE if reasons else Verdict.PASS))
    expected = expect if expect is not None else Expect()
    by_phase = kills_by_phase(outcomes)
    return Judgement(
        verdict=verdict,
        as_expected=is_as_expected(expected, verdict, findings),
        expect=expected,
        is_strict=strict,
        findings=findings,
        checks=results,
        inconclusive=reasons,
        kills_requested=kills_requested,
        kills_landed=sum(by_phase.values()),
        kills_by_phase=by_phase,
    )


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
            for kill in landed_kills((outcome,)):
                if kill.life.evidence is not None:
                    counts[kill.life.evidence.phase] += 1
    return counts


def findings_of(violations: Iterable[Violation], run_name: str) -> tuple[Finding, ...]:
    """Make one finding of all violations of one check at one kind of place; errors first, then in the order of checks.

    The violation of the earliest trial stands for the others, whatever order they come in.
    """
    groups: dict[tuple[str, ...], list[Violation]] = {}
    for violation in sorted(violations, key=_by_place):
        groups.setdefault(_kind_of_place(violation), []).append(violation)
    findings = [_finding(group, run_name) for group in groups.values()]
    order = list(CheckName)
    return tuple(
        sorted(findings, key=lambda finding: (finding.severity is not Severity.ERROR, order.index(finding.check)))
    )


def _by_place(violation: Violation) -> tuple[int, int, str, str]:
    return (violation.trial, violation.life, violation.check, violation.detail)


def _kind_of_place(violation: Violation) -> tuple[str, ...]:
    """Return what two violations share when they are the same finding: check, phase, call and file."""
    point = violation.crash_point
    if point is None:
        return (violation.check,)
    return (violation.check, point.expected_phase, point.address.call, point.address.file)


def _finding(group: list[Violation], run_name: str) -> Finding:
    """Make a finding of the violations of one kind of place, in their order."""
    first = group[0]
    where = str(first.crash_point) if first.crash_point is not None else NO_FAULT
    phase = first.crash_point.expected_phase if first.crash_point is not None else ""
    place = f"{first.crash_point.address}, {first.crash_point.tear_offset}" if first.crash_point is not None else ""
    return Finding(
        id=xxhash.xxh3_64_hexdigest(f"{first.check}|{phase}|{place}".encode())[:10],
        check=first.check,
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


def is_as_expected(expect: Expect, verdict: Verdict, findings: Iterable[Finding]) -> bool:
    """Tell whether a campaign came out as expected; warnings are expected by nobody and surprise nobody."""
    if verdict is not expect.verdict:
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

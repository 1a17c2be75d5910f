"""What a campaign prints for people: progress lines while it runs, and the report at its end.

The report is written for an engineer who has never seen this tool: what broke, where, why, and what to type next. It
is plain text, without colour codes, wherever the stream is not a terminal; rich is imported only when it is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from chaos.checks.lineage import is_completed, is_stopped
from chaos.checks.severity import severity_of
from chaos.journal import (
    CampaignEnded,
    CampaignStarted,
    Event,
    ReferenceRecorded,
    TrialDiscarded,
    TrialFinished,
    TrialsPlanned,
)
from chaos.model import (
    CheckName,
    CheckStatus,
    FaultKind,
    LifeEnd,
    LifeRecord,
    Outcome,
    Reference,
    Severity,
    TrialKind,
    Verdict,
)
from chaos.reports.coverage import coverage_in_words
from chaos.reports.explanations import EXPLANATIONS, FAULT_WORDS
from chaos.reports.exploration import ExplorationProgress, exploration_in_words, print_exploration
from chaos.reports.parts import (
    LABEL,
    VERDICT_STYLE,
    Line,
    console_on,
    doubt_lines,
    finding_lines,
    labelled,
    print_lines,
    width_of,
)
from chaos.reports.result import ProbeFacts, Result

if TYPE_CHECKING:
    from rich.console import Console

_MOST_NAMES = 5
_STATUS_WORD = {CheckStatus.PASSED: "passed", CheckStatus.FAILED: "FAILED", CheckStatus.NOT_RUN: "not run"}
_STATUS_STYLE = {CheckStatus.PASSED: "green", CheckStatus.FAILED: "red", CheckStatus.NOT_RUN: "yellow"}


_STRUCK_WORD = {
    FaultKind.POWER_LOSS: "power lost",
    FaultKind.DISK_FULL: "disk full",
    FaultKind.IO_ERROR: "I/O error",
    FaultKind.SHORT_WRITE: "short write",
    FaultKind.BIT_FLIP: "damaged",
}
_CHECKS_OF_ERRORS = frozenset({CheckName.FAILED_SAVE_IGNORED})
_CHECKS_OF_DAMAGE = frozenset({CheckName.CORRUPTION_ACCEPTED})


class Progress:
    """Turns a campaign's events into lines, one or none each, as they come."""

    def __init__(self, stream: TextIO) -> None:
        """Print to `stream`."""
        self._stream = stream
        self._requested = 0
        self._landed = 0
        self._word = "kills"
        self._exploration: ExplorationProgress | None = None

    def handle(self, event: Event) -> None:
        """Print what a reader wants to know of one event."""
        if self._exploration is not None and self._exploration.handle(event):
            return
        for line in self._lines(event):
            print(line, file=self._stream, flush=True)

    def remember(self, event: Event) -> None:
        """Count an event of an earlier sitting; only what was asked is printed again, with the seed."""
        if isinstance(event, CampaignStarted):
            self.handle(event)
        elif self._exploration is not None and self._exploration.remember(event):
            return
        else:
            for _ in self._lines(event):
                pass

    def _lines(self, event: Event) -> Iterator[str]:
        """Yield the lines for one event."""
        match event:
            case CampaignStarted():
                kinds = event.scenario.kinds
                self._requested = event.kills * len(kinds)
                self._word = "kills" if kinds == (FaultKind.KILL,) else "faults"
                what = f"{self._requested} {self._word}"
                if event.exploration is not None:
                    self._exploration = ExplorationProgress(self._stream, event.exploration.saves)
                    what = "every crash state"
                yield f"run {event.run}: {what}, seed {event.seed}"
            case ReferenceRecorded():
                yield f"reference: {reference_in_words(event.reference)}"
            case TrialsPlanned():
                faulted = [trial for trial in event.trials if trial.kind is TrialKind.FAULTED]
                kills = sum(len(trial.crash_points) for trial in faulted)
                if faulted:
                    yield f"planned: {kills} {self._word} in {len(faulted)} trials"
            case TrialFinished():
                if event.outcome.trial.kind is TrialKind.FAULTED:
                    self._landed += event.outcome.kills_landed
                count = f"  [{self._landed}/{self._requested} {self._word}]" if self._exploration is None else ""
                yield f"{trial_in_words(event.outcome)}{count}"
            case TrialDiscarded():
                yield f"trial {event.number} is discarded and drawn again: {event.reason}"
            case CampaignEnded():
                yield from event.causes


def reference_in_words(reference: Reference) -> str:
    """Say in one line what the uninterrupted runs showed."""
    profile = reference.profile
    same = "two runs ended with the same bits" if reference.deterministic else "two runs ended with DIFFERENT bits"
    return f"{profile.total_steps} steps, {len(profile.saves)} saves, {reference.seconds:.1f} s; {same}"


def trial_in_words(outcome: Outcome) -> str:
    """Say in one line what became of one trial."""
    phases = [life.evidence.phase for life in outcome.lives if life.evidence is not None and life.evidence.is_landed]
    word = _STRUCK_WORD.get(outcome.trial.fault, "killed")
    kills = f"{word} in {', '.join(phases)}" if phases else "no fault"
    if not outcome.lives:
        end = "no life was started"
    elif is_completed(outcome):
        end = "ran to its end"
    elif is_stopped(outcome):
        end = f"stopped early, beside trial {outcome.twin}"
    else:
        end = _end_in_words(outcome.lives[-1])
    return f"trial {outcome.trial.number} ({outcome.trial.kind}): {kills}; {end}  {outcome.elapsed_s:.1f} s"


def _end_in_words(life: LifeRecord) -> str:
    """Say how a life ended that did not end well."""
    how = {
        LifeEnd.EXITED: f"ended with exit status {life.exit_status}",
        LifeEnd.STRUCK: "was killed, and none came after it",
        LifeEnd.SIGNALLED: f"died of signal {life.signal}",
        LifeEnd.STOPPED: "was stopped early",
        LifeEnd.DEADLINE: "was still running at its deadline",
        LifeEnd.NOT_STARTED: "could not be started",
    }
    return f"life {life.number} {how[life.end]}"


def print_report(result: Result, stream: TextIO) -> None:
    """Print the whole report of a campaign to `stream`."""
    console = console_on(stream)
    width = width_of(console)
    print_lines(console, _head(result, width))
    if result.exploration is None:
        _print_kills(console, result)
        if FaultKind.KILL in result.verdicts:
            print_lines(console, _coverage(result, width))
    else:
        print_exploration(console, result.exploration)
    print_lines(console, _checks(result, width))
    print_lines(console, finding_lines(result.findings, width))
    print_lines(console, doubt_lines(result.inconclusive, width))
    print_lines(console, _ending(result, width))


def _head(result: Result, width: int) -> Iterator[Line]:
    """Yield what was run, and against which expected bits."""
    yield Line(text=f"seed {result.seed}", style="bold")
    yield from labelled("scenario", result.scenario, width) if result.scenario else ()
    yield from labelled("claim", result.claim, width) if result.claim else ()
    yield Line(text=f"  {'target':<{LABEL}}{result.target}")
    yield from labelled("files", f"checkpoints {', '.join(result.checkpoints)}; final {', '.join(result.final)}", width)
    reference = result.reference
    names = f" ({', '.join(reference.differing_tensors)})" if reference.differing_tensors else ""
    same = "the same bits" if reference.deterministic else f"DIFFERENT bits{names}"
    has_run = reference.seconds > 0
    facts = (
        f"{reference.total_steps} steps and {reference.num_saves} saves in {reference.seconds:.1f} s; "
        f"two uninterrupted runs ended with {same}; digest of the final files {reference.final_digest or 'unknown'}"
        if has_run
        else "none: see what is not proven"
    )
    yield from labelled("reference", facts, width)
    if result.probe.reference_steps:
        yield from labelled("probe", _probe_in_words(result.probe), width)
    for key, left_out in reference.varying_leaves.items():
        varies = f"{_listed(left_out)} in {key}: the two uninterrupted runs differ there"
        yield from labelled("left out", varies, width)
    if result.outside_writes:
        outside = (
            f"written outside of {{out}}, where nobody looks: {_listed(result.outside_writes)}; state kept there is "
            "not judged"
        )
        yield from labelled("note", outside, width, "yellow")
    for sentence in result.not_guaranteed:
        yield from labelled("note", sentence, width, "yellow")


def _probe_in_words(probe: ProbeFacts) -> str:
    """Say of how many steps everything was digested, and what cannot be compared."""
    seen = f"all state digested at {probe.reference_digested} of {probe.reference_steps} steps of the reference"
    lives = f"{probe.lives_digested} of {probe.lives_steps} of the lives"
    is_whole = (probe.reference_digested, probe.lives_digested) == (probe.reference_steps, probe.lives_steps)
    more = "" if is_whole else " (the others are left out in part, to cost little: --probe-budget)"
    varying = (
        f"; not compared, since two runs differ in it: {_listed(probe.not_compared)}" if probe.not_compared else ""
    )
    return f"{seen}, {lives}{more}{varying}"


def _listed(names: tuple[str, ...]) -> str:
    """List names, at most a few."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _print_kills(console: Console, result: Result) -> None:
    """Print the table of landed kills by phase, beside the points of that phase."""
    from rich.table import Table

    unreached = f"; {result.kills_unreached} points were not reached and drawn again" if result.kills_unreached else ""
    word = "Kills" if tuple(result.verdicts) == (FaultKind.KILL,) else "Faults"
    console.print()
    console.print(f"{word}: {result.kills_landed} of {result.kills_requested} landed{unreached}", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    if word == "Kills":
        table.add_column("  phase")
        for head in ("kills", "points hit", "points known"):
            table.add_column(head, justify="right")
        for phase, count in result.kills_by_phase.items():
            points = result.coverage.by_phase[phase]
            table.add_row(f"  {phase}", str(count), str(points.hit), str(points.known))
    else:
        table.add_column("  fault")
        table.add_column("landed", justify="right")
        for kind, count in result.landed_by_fault.items():
            table.add_row(f"  {FAULT_WORDS[kind]}", str(count))
    console.print(table)


def _coverage(result: Result, width: int) -> Iterator[Line]:
    """Yield how much of what is known was hit, and what that is worth."""
    coverage = result.coverage
    yield Line(text="")
    yield Line(
        text=f"Coverage: {coverage.points_hit} of {coverage.points_known} known crash points were hit", style="bold"
    )
    for label, sentence in coverage_in_words(coverage, result.mode):
        yield from labelled(label, sentence, width)


def _checks(result: Result, width: int) -> Iterator[Line]:
    """Yield each check with its status and its rule, or why it was not run."""
    yield Line(text="")
    yield Line(text="Checks", style="bold")
    for name, status in result.checks.items():
        if status is CheckStatus.NOT_RUN and not _is_asked(name, result.verdicts):
            continue
        rule = EXPLANATIONS[name].rule
        text = f"{name}: {rule}" if status is not CheckStatus.NOT_RUN else f"{name}: {result.not_run.get(name, rule)}"
        is_warning = status is CheckStatus.FAILED and severity_of(name) is Severity.WARNING
        word = "warning" if is_warning else _STATUS_WORD[status]
        yield from labelled(word, text, width, "yellow" if is_warning else _STATUS_STYLE[status])


def _is_asked(name: CheckName, kinds: Iterable[FaultKind]) -> bool:
    """Tell whether a check is about any of the kinds of fault that were asked for."""
    if name in _CHECKS_OF_ERRORS:
        return any(kind.is_error for kind in kinds)
    return name not in _CHECKS_OF_DAMAGE or FaultKind.BIT_FLIP in kinds


def _ending(result: Result, width: int) -> Iterator[Line]:
    """Yield the verdict, what it means, where everything is kept, and the seed."""
    yield Line(text="")
    if len(result.verdicts) > 1 or FaultKind.KILL not in result.verdicts:
        for kind, verdict in result.verdicts.items():
            yield Line(text=f"{FAULT_WORDS[kind]}: {verdict.upper()}", style=VERDICT_STYLE[verdict])
    yield Line(text=f"verdict: {result.verdict.upper()}", style=VERDICT_STYLE[result.verdict])
    yield from labelled("means", _meaning(result), width)
    if result.expected is not Verdict.PASS:
        came = "as expected" if result.as_expected else "NOT as expected"
        text = f"this scenario expects {result.expected}; this came out {came}"
        yield from labelled("expected", text, width, "green" if result.as_expected else "red")
    yield from labelled("time", _speed(result), width)
    yield Line(text=f"  {'kept in':<{LABEL}}{result.run_dir}")
    yield Line(text=f"seed {result.seed}", style="bold")


def _speed(result: Result) -> str:
    """Say how long it took, and what that is an hour."""
    if result.exploration is not None:
        judged = result.exploration.states_judged
        hourly = judged * 3600 / result.elapsed_s if result.elapsed_s else 0.0
        return f"{judged} crash states judged in {result.elapsed_s:.1f} s, {hourly:,.0f} an hour"
    word = "kill" if tuple(result.verdicts) == (FaultKind.KILL,) else "fault"
    kills = f"1 verified {word}" if result.verified_kills == 1 else f"{result.verified_kills} verified {word}s"
    early = result.recoveries_stopped_early
    stopped = f", {early} {'recovery' if early == 1 else 'recoveries'} stopped early," if early else ""
    return f"{kills}{stopped} in {result.elapsed_s:.1f} s, {result.verified_kills_per_hour:,.0f} an hour"


def _meaning(result: Result) -> str:
    """Say what the verdict means in one sentence."""
    if result.verdict is Verdict.FAIL:
        return "At least one rule was seen broken; each finding above ends with the command that shows it again."
    if result.exploration is not None:
        return exploration_in_words(result.verdict, result.exploration)
    if result.verdict is Verdict.INCONCLUSIVE and not result.kills_landed:
        return "Nothing was tested: no fault has landed. See what is not proven."
    if result.verdict is Verdict.INCONCLUSIVE:
        return "No error was found, but not everything that was asked for could be shown: see what is not proven."
    checks = {name: status for name, status in result.checks.items() if _is_asked(name, result.verdicts)}
    passed = [name for name, status in checks.items() if status is CheckStatus.PASSED]
    word = "kills" if tuple(result.verdicts) == (FaultKind.KILL,) else "faults"
    proven = f"{result.kills_landed} {word} landed, and {len(passed)} of {len(checks)} checks passed"
    not_run = [name for name, status in checks.items() if status is CheckStatus.NOT_RUN]
    rest = f"; {len(not_run)} {'was' if len(not_run) == 1 else 'were'} not run" if not_run else ""
    warned = "; there are warnings" if result.findings else ""
    which = " that was not stopped early" if result.recoveries_stopped_early else ""
    same = f"; every interrupted run{which} ended with the same bits" if CheckName.SILENT_DIVERGENCE in passed else ""
    return f"{proven}{rest}{same}{warned}."

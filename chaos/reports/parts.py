"""The parts that reports for people are put together from: lines, labelled paragraphs, findings, doubts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from chaos.diagnosis import in_words
from chaos.fingerprints import in_words as fingerprint_in_words
from chaos.model import CheckName, FaultKind, Finding, Record, Severity, Verdict
from chaos.reports.explanations import EXPLANATIONS
from chaos.verdict import NO_FAULT

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 100
LABEL = 12
VERDICT_STYLE = {Verdict.PASS: "bold green", Verdict.FAIL: "bold red", Verdict.INCONCLUSIVE: "bold yellow"}

_HOW_TO_READ = (
    "`in save 2, before write #3 of F` is the moment right before the third write call to the file F within the second "
    "save of the life that was killed."
)


class Line(Record, kw_only=True):
    """One line of text and how it looks on a terminal."""

    text: str
    style: str = ""


def console_on(stream: TextIO) -> Console:
    """Make a console that writes colour codes to terminals only, whatever the environment says."""
    from rich.console import Console

    is_terminal = stream.isatty()
    return Console(
        file=stream,
        force_terminal=is_terminal,
        color_system="auto" if is_terminal else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )


def width_of(console: Console) -> int:
    """Return how wide text is to be."""
    return min(_WIDTH, console.width) if console.is_terminal else _WIDTH


def print_lines(console: Console, lines: Iterator[Line]) -> None:
    """Print lines."""
    for line in lines:
        console.print(line.text, style=line.style or None)


def labelled(label: str, text: str, width: int, style: str = "") -> Iterator[Line]:
    """Yield `text` wrapped behind a label; its own line breaks are kept, and lines that begin with a space whole."""
    head = f"  {label:<{LABEL}}"
    for paragraph in text.splitlines() or [""]:
        is_quoted = paragraph.startswith(" ")  # a line of the target's own output, which stays as it was printed
        lines = textwrap.wrap(paragraph, width - len(head), break_long_words=False, break_on_hyphens=False)
        for line in [paragraph] if is_quoted else lines or [""]:
            yield Line(text=f"{head}{line}".rstrip(), style=style)
            head = " " * len(head)


def finding_lines(findings: Sequence[Finding], width: int) -> Iterator[Line]:
    """Yield each finding: what broke, where, what was seen, why, and the command that shows it again."""
    if not findings:
        return
    yield Line(text="")
    yield Line(text=f"Findings: {len(findings)}", style="bold")
    if any(finding.crash_point.startswith("in save") for finding in findings):
        yield from labelled("", _HOW_TO_READ, width)
    explained: set[CheckName] = set()
    for number, finding in enumerate(findings, start=1):
        yield Line(text="")
        yield from _finding(number, finding, width, is_first=finding.check not in explained)
        explained.add(finding.check)


def _finding(number: int, finding: Finding, width: int, *, is_first: bool) -> Iterator[Line]:
    """Yield one finding; its explanation only where the check is met for the first time."""
    is_error = finding.severity is Severity.ERROR
    seen = f", seen {finding.seen} times" if finding.seen > 1 else ""
    title = f"  {number}. {finding.check} ({finding.severity}{seen}, id {finding.id})"
    yield Line(text=title, style="bold red" if is_error else "bold yellow")
    explanation = EXPLANATIONS[finding.check]
    if is_first:
        yield from labelled("what broke", explanation.meaning, width)
    yield from labelled("where", _place(finding), width)
    yield from labelled("seen", finding.detail, width)
    if finding.diagnosis is not None:
        yield from labelled("lost", "\n".join(in_words(finding.diagnosis)), width)
    if finding.fingerprint is not None:
        yield from labelled("lost", fingerprint_in_words(finding.fingerprint), width)
    is_told = (finding.diagnosis and finding.diagnosis.lost) or (finding.fingerprint and finding.fingerprint.unused)
    if is_first and not is_told:
        yield from labelled("why", explanation.cause, width)
    yield Line(text=f"  {'next':<{LABEL}}{finding.replay}", style="bold")


def _place(finding: Finding) -> str:
    """Say in which trial and life it showed, where the kill before that was, and at which step."""
    life = f", life {finding.life}" if finding.life else ""
    is_kill = finding.fault is FaultKind.KILL
    kill = (
        "without any fault" if finding.crash_point == NO_FAULT else f"{'kill ' if is_kill else ''}{finding.crash_point}"
    )
    step = f"; step {finding.step}" if finding.step is not None else ""
    return f"trial {finding.trial}{life}; {kill}{step}"


def doubt_lines(reasons: Sequence[str], width: int) -> Iterator[Line]:
    """Yield the reasons why the campaign does not prove what it should."""
    if not reasons:
        return
    yield Line(text="")
    yield Line(text="Not proven", style="bold yellow")
    for reason in reasons:
        text = textwrap.fill(
            reason,
            width,
            initial_indent="  - ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield Line(text=text)

"""What a campaign of real power cuts showed, file system by file system, and how `chaos powercut` tells it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from chaos.model import SCHEMA, Finding, Record, Verdict
from chaos.reports.parts import (
    VERDICT_STYLE,
    Line,
    console_on,
    doubt_lines,
    finding_lines,
    labelled,
    print_lines,
    width_of,
)

_EXACT_DIGITS: Final = 6
_MEANS: Final = {
    Verdict.PASS: "No acknowledged work was lost at any cut, and every run went on to the same bits.",
    Verdict.FAIL: "At least one rule was seen broken; each finding above ends with the command that shows it again.",
    Verdict.INCONCLUSIVE: "No error was found, but not everything that was asked for could be shown.",
}


class ModelStates(Record, kw_only=True):
    """How many states the durability model allows at the cuts, as text: a number, or a power of ten."""

    least: str
    median: str
    most: str


class OnFileSystem(Record, kw_only=True):
    """The cuts on one file system: how many, what was left, what follows.

    `states_distinct` counts what was left of the folder by its names and bytes, `nothing_lost` the cuts after which all
    was there. `model_lacks` says of each state that the durability model does not have why not: a fault of ours.
    """

    file_system: str
    verdict: Verdict
    cuts_requested: int
    cuts: int
    states_distinct: int
    nothing_lost: int
    model_states: ModelStates | None
    model_lacks: tuple[str, ...]
    findings: tuple[Finding, ...]
    inconclusive: tuple[str, ...]


class PowerCuts(Record, kw_only=True):
    """The whole campaign for a machine to read; `error` says what broke it off before its end."""

    schema: int = SCHEMA
    verdict: Verdict
    as_expected: bool
    expected: Verdict
    seed: int
    scenario: str
    claim: str
    target: str
    file_systems: tuple[OnFileSystem, ...]
    elapsed_s: float
    run_dir: str
    error: str = ""

    @property
    def model_lacks(self) -> tuple[str, ...]:
        """Return why the model lacks states that were seen, of all file systems."""
        return tuple(reason for one in self.file_systems for reason in one.model_lacks)


def model_states(sizes_log10: Sequence[float]) -> ModelStates | None:
    """Put the sizes of several sets, as decimal logarithms, into text; None where there is none."""
    ordered = sorted(sizes_log10)
    if not ordered:
        return None
    least, median, most = (_size(ordered[place]) for place in (0, len(ordered) // 2, -1))
    return ModelStates(least=least, median=median, most=most)


def _size(log10: float) -> str:
    """Return a number in full where it has few digits."""
    return str(round(10**log10)) if log10 < _EXACT_DIGITS else f"10^{math.floor(log10)}"


def print_powercuts(result: PowerCuts, stream: TextIO) -> None:
    """Print the whole report to `stream`."""
    console = console_on(stream)
    width = width_of(console)
    print_lines(console, _head(result, width))
    print_lines(console, _table(result))
    print_lines(console, _lacking(result, width))
    print_lines(console, finding_lines([found for one in result.file_systems for found in one.findings], width))
    reasons = (f"{one.file_system}: {reason}" for one in result.file_systems for reason in one.inconclusive)
    print_lines(console, doubt_lines(list(reasons), width))
    print_lines(console, _ending(result, width))


def _head(result: PowerCuts, width: int) -> Iterator[Line]:
    """Yield what was run."""
    yield Line(text=f"seed {result.seed}", style="bold")
    yield from labelled("scenario", result.scenario, width) if result.scenario else ()
    yield from labelled("claim", result.claim, width) if result.claim else ()
    yield from labelled("target", result.target, width)


def _table(result: PowerCuts) -> Iterator[Line]:
    """Yield a line for each file system."""
    width = max(13, *(len(one.file_system) + 1 for one in result.file_systems))
    yield Line(text="")
    yield Line(text="Power cuts on real file systems", style="bold")
    columns = f"{'cuts':>8}{'all there':>11}{'states':>8}  {'in the model':<24}{'findings':>9}  verdict"
    yield Line(text=f"  {'file system':<{width}}{columns}")
    for one in result.file_systems:
        allowed = one.model_states
        sizes = f"{allowed.least} / {allowed.median} / {allowed.most}" if allowed is not None else "not counted"
        cuts = f"{one.cuts} of {one.cuts_requested}"
        counts = f"{cuts:>8}{one.nothing_lost:>11}{one.states_distinct:>8}  {sizes:<24}{len(one.findings):>9}"
        yield Line(text=f"  {one.file_system:<{width}}{counts}  {one.verdict}", style=VERDICT_STYLE[one.verdict])
    yield Line(
        text="  (all there: cuts that lost nothing; states: distinct ones that were left; in the model: how many a"
    )
    yield Line(text="  cut may leave there by the durability model, least / median / most)")


def _lacking(result: PowerCuts, width: int) -> Iterator[Line]:
    """Yield the states that should not have been possible."""
    if result.model_lacks:
        yield Line(text="")
        yield Line(text="The model lacks this state: a fault of ours, please report it", style="bold red")
    for one in result.file_systems:
        for reason in one.model_lacks:
            yield from labelled(one.file_system, reason, width)


def _ending(result: PowerCuts, width: int) -> Iterator[Line]:
    """Yield the verdict, what it means, where everything is kept, and the seed."""
    yield Line(text="")
    yield Line(text=f"verdict: {result.verdict.upper()}", style=VERDICT_STYLE[result.verdict])
    yield from labelled("means", _MEANS[result.verdict], width)
    if result.expected is not Verdict.PASS:
        came = "as expected" if result.as_expected else "NOT as expected"
        yield from labelled("expected", f"this scenario expects {result.expected}; this came out {came}", width)
    cuts = sum(one.cuts for one in result.file_systems)
    yield from labelled("time", f"{cuts} power cuts in {result.elapsed_s:.1f} s", width)
    yield from labelled("kept in", result.run_dir, width)
    yield Line(text=f"seed {result.seed}", style="bold")

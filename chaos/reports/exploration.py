"""What `chaos explore` prints for people: how far it has come, what was enumerated, where a kill does harm."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TextIO

from chaos.explored import Explored, Interval, LostGroup
from chaos.journal import CampaignEnded, Event, StatesFound, TrialFinished, TrialRepeated, TrialsPlanned
from chaos.model import Address, FaultKind, TrialKind, Verdict
from chaos.planners.exhaustive import representatives, within_saves
from chaos.reports.explanations import FAULT_WORDS

if TYPE_CHECKING:
    from rich.console import Console
    from tqdm import tqdm  # type: ignore[import-untyped]

_LINE_EVERY_S: Final = 10.0
_TRIED: Final = (TrialKind.EXPLORED, TrialKind.FAULTED)


class ExplorationProgress:
    """A bar on a terminal, a line every ten seconds elsewhere: states judged, rate, time left."""

    def __init__(self, stream: TextIO, saves: str) -> None:
        """Tell on `stream`; `saves` says which of the points found are tried."""
        self._stream = stream
        self._saves = saves
        self._seen: set[str] = set()
        self._total = 0
        self._done = 0
        self._before = 0
        self._begin_s = 0.0
        self._told_s = 0.0
        self._bar: tqdm[None] | None = None

    def handle(self, event: Event) -> bool:
        """Take an event; False where it is none of the exploration, so that somebody else may tell it."""
        match event:
            case StatesFound():
                self._find(event)
            case TrialFinished() if event.outcome.trial.kind in _TRIED:
                self._done += 1
                self._tell()
            case TrialRepeated():
                pass
            case TrialsPlanned() if self._count_trials(event):
                print(f"errors: {self._count_trials(event)} trials", file=self._stream, flush=True)
                self._total += self._count_trials(event)
            case CampaignEnded():
                self._close()
                return False
            case _:
                return False
        return True

    def remember(self, event: Event) -> bool:
        """Count an event of an earlier sitting; False where it is none of the exploration."""
        match event:
            case StatesFound():
                self._count(event)
            case TrialsPlanned() if self._count_trials(event):
                self._total += self._count_trials(event)
            case TrialFinished() if event.outcome.trial.kind in _TRIED:
                self._done += 1
                self._before += 1
            case _:
                return False
        return True

    def _count_trials(self, event: TrialsPlanned) -> int:
        """Count the trials in which a life meets an error."""
        return sum(trial.kind is TrialKind.FAULTED for trial in event.trials)

    def _count(self, event: StatesFound) -> int:
        """Count the states that will be tried, and return the number of the points that lead to them."""
        if event.life == 1 and event.slot:
            return 0
        states = within_saves(event.states, self._saves) if event.life == 1 else event.states
        new = representatives([state for state in states if state.digest not in self._seen])
        self._seen.update(state.digest for state in new)
        self._total += len(new)
        if self._bar is not None:
            self._bar.total = self._total
        return len(states)

    def _find(self, event: StatesFound) -> None:
        """Take in what was recorded, and say of the first run what there is to try."""
        num_points = self._count(event)
        if event.life == 1 and not event.slot:
            text = f"recorded: {num_points} crash points, {self._total} distinct states to recover from"
            print(text, file=self._stream, flush=True)

    def _begin(self) -> None:
        """Begin to count the time, at the first state of this sitting."""
        self._begin_s = self._told_s = time.monotonic()
        if self._stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=self._total, initial=self._done - 1, unit="state", file=self._stream, dynamic_ncols=True
            )

    def _tell(self) -> None:
        """Show how far it is."""
        if not self._begin_s:
            self._begin()
        if self._bar is not None:
            self._bar.update(1)
            return
        now = time.monotonic()
        if now - self._told_s >= _LINE_EVERY_S:
            self._told_s = now
            rate = (self._done - self._before) / max(now - self._begin_s, 1e-9)
            left_s = (self._total - self._done) / rate
            text = f"{self._done} of {self._total} states judged, {rate:.1f} a second, {left_s:.0f} s left"
            print(text, file=self._stream, flush=True)

    def _close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def print_exploration(console: Console, explored: Explored) -> None:
    """Print what there is and what was judged, by operation and file, and the intervals in which a kill does harm."""
    from rich.table import Table

    console.print()
    for line in _counts_in_words(explored):
        console.print(line, style="bold")
    if explored.states_early_stopped:
        console.print(
            f"  {explored.states_early_stopped} recoveries were stopped early, beside one from the same files"
        )
    if explored.by_operation:
        table = Table(box=None, pad_edge=False, padding=(0, 2))
        table.add_column("  operation")
        table.add_column("file")
        for head in ("points", "judged", "failing"):
            table.add_column(head, justify="right")
        for count in explored.by_operation:
            numbers = (str(count.points), str(count.judged), str(count.failing))
            table.add_row(f"  {count.operation}", count.file or "-", *numbers)
        console.print(table)
    if explored.intervals:
        console.print()
        console.print("Where a kill does harm", style="bold")
        for line in intervals_in_words(explored.intervals):
            console.print(f"  {line}")
    if explored.losses:
        console.print()
        console.print("What is missing when the power goes", style="bold")
        for group in explored.losses:
            console.print(f"  {loss_in_words(group)}")


def _counts_in_words(explored: Explored) -> Iterator[str]:
    """Yield what there is, one line for each kind of fault if there are several."""
    kinds = explored.by_fault
    if not kinds or tuple(count.fault for count in kinds) == (FaultKind.KILL,):
        yield (
            f"Crash points: {explored.points_recorded} in {_saves_in_words(explored.saves)}, "
            f"{explored.points - explored.points_recorded} in recoveries (depth {explored.depth}); "
            f"{explored.states_distinct} distinct states, {explored.states_judged} judged"
        )
        return
    for count in kinds:
        what = "trials" if count.fault.is_error else "distinct states"
        yield f"{FAULT_WORDS[count.fault]}: {count.states} {what}, {count.judged} judged, {count.failing} failing"
    if explored.points_cut:
        yield (
            f"  at {explored.points_cut} points a loss of power may leave more states than the {explored.num_losses} "
            "for each file system that were tried, the worst ones first"
        )


def loss_in_words(group: LostGroup) -> str:
    """Say what is missing, before which operation, and what comes of it."""
    saves = ", ".join(map(str, group.saves))
    where = f" in save{'s' if len(group.saves) > 1 else ''} {saves}" if saves else ""
    at = f", at {group.published_by}" if group.published_by else ""
    return (
        f"{group.path}: {group.missing}{at}: {', '.join(group.checks)}{where} "
        f"({group.states} state{'' if group.states == 1 else 's'}; {', '.join(group.profiles)})"
    )


def intervals_in_words(intervals: tuple[Interval, ...]) -> Iterator[str]:
    """Yield one line for all intervals that are the same but for the save they are in."""
    grouped: dict[str, list[Interval]] = {}
    for interval in intervals:
        grouped.setdefault(f"{interval.check}: {_bounds(interval)}", []).append(interval)
    for text, alike in grouped.items():
        saves = sorted({interval.save for interval in alike if interval.save})
        where = f" in save{'s' if len(saves) > 1 else ''} {', '.join(map(str, saves))}" if saves else ""
        points = sum(interval.points for interval in alike)
        yield f"{text}{where} ({points} crash point{'' if points == 1 else 's'})"


def _bounds(interval: Interval) -> str:
    """Say between which operations a kill does harm."""
    opens = "the start" if interval.opens is None else _operation(interval.opens)
    closes = "the end" if interval.closes is None else _operation(interval.closes)
    later = f", in life {interval.life}" if interval.life > 1 else ""
    if interval.is_torn and interval.opens == interval.closes:
        return f"inside {opens}{later}"
    start = f"from inside {opens}" if interval.is_torn else f"after {opens}"
    return f"{start} and until {closes} is done{later}"


def _operation(address: Address) -> str:
    return address.operation


def _saves_in_words(saves: str) -> str:
    """Say which saves were asked for."""
    return {"all": "the run", "first": "its first save", "last": "its last save"}.get(saves, f"its save {saves}")


def exploration_in_words(verdict: Verdict, explored: Explored) -> str:
    """Say what a verdict that is no failure means."""
    if verdict is Verdict.INCONCLUSIVE:
        return "No error was found, but not everything that was asked for could be shown: see what is not proven."
    kinds = [FAULT_WORDS[count.fault] for count in explored.by_fault]
    if kinds and kinds != [FAULT_WORDS[FaultKind.KILL]]:
        tried = sum(count.judged for count in explored.by_fault)
        what = f"each of {tried} states and errors tried ({', '.join(kinds)})"
        refused = FAULT_WORDS[FaultKind.BIT_FLIP] in kinds
        others = "; where no other checkpoint was left, it refused a damaged one" if refused else ""
        return f"the target came back from {what}, and ended with the same bits{others}{_stopped_in_words(explored)}."
    return (
        f"a kill at any of {explored.points} crash points leaves one of {explored.states_distinct} states; from each "
        f"of them the target came back and ended with the same bits{_stopped_in_words(explored)}."
    )


def _stopped_in_words(explored: Explored) -> str:
    """Say of how many recoveries the end was not seen; empty where of none."""
    stopped = explored.states_early_stopped
    return f" ({stopped} recoveries went the way of one from the same files, and were stopped early)" if stopped else ""

"""`chaos run` with fresh and with warm lives, and `chaos explore`, each as the command that a user types."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import msgspec

from chaos.model import TrialKind

from .children import Finished, run_bounded
from .records import Counted, Measurement, Script, Shares, Sizes, Status, Tool
from .script import CHECKPOINT, FINAL, OUT, command_of

_MODES: Final = {Tool.FRESH: "fresh", Tool.WARM: "warm"}
_WRONG_USAGE: Final = 2
_JUDGED: Final = frozenset({0, 1, 4})
_RUN_NOTE: Final = (
    "SIGKILL from outside while a call that changes a file (or output, or a step) is held, with evidence; the lineage "
    "finished, final bits compared. Points: those struck of {known} known ones; a write torn at several places is "
    "one point"
)
_EXPLORE_NOTE: Final = (
    "different contents of the folder that a kill (or a loss of power) can leave, each built, the script started on "
    "it, run to its end and judged. Points: {points} known, which leave {distinct} different contents{rest}"
)


class _Coverage(msgspec.Struct):
    """What `chaos run` says of the crash points that it struck."""

    points_known: int = 0
    points_hit: int = 0


class _Printed(msgspec.Struct):
    """What the benchmark needs of the object that `--json` prints."""

    verdict: str = ""
    verified_kills: int = 0
    coverage: _Coverage = msgspec.field(default_factory=_Coverage)
    points: int = 0
    states_distinct: int = 0
    states_judged: int = 0
    error: str = ""


class _Life(msgspec.Struct):
    """What the benchmark needs of a life's record."""

    elapsed_s: float


class _Trial(msgspec.Struct):
    """What it needs of a trial."""

    kind: TrialKind


class _Outcome(msgspec.Struct):
    """What it needs of an outcome, so that an outcome of any version will do."""

    trial: _Trial
    lives: tuple[_Life, ...]
    elapsed_s: float


def measure_run(tool: Tool, kills: int, script: Script, sizes: Sizes, folder: Path) -> Measurement:
    """Let `chaos run` do `kills` kills with fresh lives or warm ones, as `tool` says."""
    mode = ("--lives", _MODES[tool]) if tool is Tool.WARM else ()  # fresh is what it does when not asked
    finished = _chaos("run", ("--kills", str(kills), "--seed", str(sizes.seed), *mode), script, sizes, folder)
    printed = _printed(finished)
    if finished.status not in _JUDGED:
        return _not_measured(tool, Counted.KILLS, finished, printed)
    outcomes = _outcomes(folder)
    return Measurement(
        tool=tool,
        status=Status.MEASURED,
        number=printed.verified_kills,
        elapsed_s=finished.elapsed_s,
        points=printed.coverage.points_hit,
        workers=sizes.jobs,
        verdict=printed.verdict,
        note=_RUN_NOTE.format(known=printed.coverage.points_known),
        shares=_shares(outcomes, finished.elapsed_s * sizes.jobs) if outcomes else None,
    )


def measure_explore(tool: Tool, script: Script, sizes: Sizes, folder: Path) -> Measurement:
    """Let `chaos explore` judge crash states of kills, or of a loss of power, for the budget."""
    faults = ("--faults", "power_loss") if tool is Tool.POWER else ()  # kills are what it does when not asked
    finished = _chaos("explore", ("--budget", f"{sizes.budget_s}s", *faults), script, sizes, folder)
    printed = _printed(finished)
    if finished.status not in _JUDGED:
        return _not_measured(tool, Counted.STATES, finished, printed)
    is_whole = printed.states_judged >= printed.states_distinct
    rest = "" if is_whole else "; the budget ended before all were judged, so a judged state counts as one point"
    return Measurement(
        tool=tool,
        status=Status.MEASURED,
        counted=Counted.STATES,
        number=printed.states_judged,
        elapsed_s=finished.elapsed_s,
        points=printed.points if is_whole else printed.states_judged,
        workers=sizes.jobs,
        is_partial=not is_whole,
        verdict=printed.verdict,
        note=_EXPLORE_NOTE.format(points=printed.points, distinct=printed.states_distinct, rest=rest),
    )


def _chaos(name: str, options: tuple[str, ...], script: Script, sizes: Sizes, folder: Path) -> Finished:
    """Run one command of `chaos` on the script, its runs kept below `folder`."""
    where = ("--checkpoints", f"{OUT}/{CHECKPOINT}", "--final", f"{OUT}/{FINAL}")
    common = ("--json", "--jobs", str(sizes.jobs), "--runs", str(folder / "runs"))
    chaos = (sys.executable, "-P", "-m", "chaos")
    command = (*chaos, name, *common, *options, *where, "--", *command_of(script))
    return run_bounded(command, cwd=folder, limit_s=sizes.limit_s)


def _printed(finished: Finished) -> _Printed:
    """Return what a command printed; an empty object where it printed none."""
    try:
        return msgspec.json.decode(finished.stdout, type=_Printed)
    except msgspec.MsgspecError:
        return _Printed()


def _not_measured(tool: Tool, counted: Counted, finished: Finished, printed: _Printed) -> Measurement:
    """Tell a command or an option that is not there from one that failed."""
    status = Status.NOT_AVAILABLE if finished.status == _WRONG_USAGE else Status.FAILED
    return Measurement(
        tool=tool, status=status, counted=counted, note=" ".join((printed.error or finished.complaint).split())
    )


def _outcomes(folder: Path) -> tuple[_Outcome, ...]:
    """Return the outcomes of all trials of the one run below `folder`, to which a link may point as well."""
    paths = sorted({path.resolve() for path in folder.glob("runs/*/trials/*/outcome.json")})
    return tuple(msgspec.json.decode(path.read_bytes(), type=_Outcome) for path in paths)


def _shares(outcomes: tuple[_Outcome, ...], workers_s: float) -> Shares:
    """Say where the workers' time went."""
    faulted = [outcome for outcome in outcomes if outcome.trial.kind is TrialKind.FAULTED]
    lives_s = sum(life.elapsed_s for outcome in faulted for life in outcome.lives)
    trials_s = sum(outcome.elapsed_s for outcome in faulted)
    others_s = sum(outcome.elapsed_s for outcome in outcomes) - trials_s
    return Shares(
        target=lives_s / workers_s,
        trials=(trials_s - lives_s) / workers_s,
        references=others_s / workers_s,
        rest=(workers_s - trials_s - others_s) / workers_s,
    )

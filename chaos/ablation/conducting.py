"""The whole of `chaos ablate`: the run's folder, references, killed lives, rows, sizes, claims, plot."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from chaos.ablation.experiment import Experiment, FirstLife, ReferenceRun
from chaos.ablation.lanes import Lanes
from chaos.ablation.omissions import Course, Omission, require_course
from chaos.ablation.sizes import sizes_of
from chaos.errors import ChaosError, HarnessError
from chaos.model import Record
from chaos.reports.ablation import Ablation, AblationRow
from chaos.reports.ablation_claims import claims_of
from chaos.reports.ablation_plot import HOW_TO_GET, can_draw, draw
from chaos.runs import remove_run, start_run
from chaos.scenario import load_scenario
from chaos.settings import SettingsLayer, resolve_settings

RESULT: Final = "ablation.json"
PLOT: Final = "ablation.svg"


class InterruptedExperimentError(ChaosError):
    """The experiment was interrupted, and its run's folder is gone: there is no use for a part of it."""

    exit_status = 130


class AskedAblation(Record, kw_only=True):
    """What is asked: the course, which rows, below which folder runs are kept, where the plot goes.

    Without `plot` it goes into the run's folder, if it can be drawn at all.
    """

    course: Course
    omissions: tuple[Omission, ...]
    root: Path
    plot: Path | None = None


def ablate(asked: AskedAblation, tell: Callable[[str], None]) -> Ablation:
    """Run the experiment; `tell` is called with a line before each part that takes time.

    Raises UsageError for a course that shows nothing, InconclusiveError where the trainer does not repeat itself,
    HarnessError, InterruptedExperimentError. No process of it is left, however it ends, and no file of it where it was
    interrupted.
    """
    begin_s = time.monotonic()
    course = require_course(asked.course)
    scenario = load_scenario("durable")
    folder, _ = start_run(
        asked.root, scenario, resolve_settings(SettingsLayer(kills=1, seed=course.seed), scenario), is_latest=False
    )
    try:
        return _conduct(asked, course, folder, begin_s, tell)
    except KeyboardInterrupt as interrupt:
        raise _given_up(folder) from interrupt


def _given_up(folder: Path) -> InterruptedExperimentError:
    """Remove the run's folder, and return the error that says so, or what is left where that cannot be done."""
    try:
        remove_run(folder)
    except OSError as error:
        hint = f"it cannot be continued, and {folder} could not be removed ({error.strerror}): remove it by hand"
    else:
        hint = "nothing of it is left, and it cannot be continued: start it anew"
    return InterruptedExperimentError("interrupted", hint=hint)


def _conduct(
    asked: AskedAblation, course: Course, folder: Path, begin_s: float, tell: Callable[[str], None]
) -> Ablation:
    """Run everything in the run's folder, and leave what came of it there."""
    plot = asked.plot or (folder / PLOT if can_draw() else "")
    trials = folder / "trials"
    references, rows = _run(Experiment(course, trials), course, asked.omissions, tell)
    tell("and what the files hold …")
    sizes = sizes_of(references[0].folder / "out")
    claims = claims_of(course.steps, course.seam, rows, references[0].told, sizes)
    _tidy(trials)
    ablation = Ablation(
        steps=course.steps,
        seam=course.seam,
        seed=course.seed,
        rows=rows,
        references=tuple(reference.told for reference in references),
        sizes=sizes,
        optimizer_share=sizes.optimizer_share,
        half_share=sizes.half_share,
        claims=claims,
        came_out_as_told=all(claim.holds for claim in claims if claim.is_judged),
        elapsed_s=time.monotonic() - begin_s,
        plot=str(plot),
        run_dir=str(folder),
    )
    leave(ablation, tell)
    return ablation


def _run(
    experiment: Experiment, course: Course, omissions: tuple[Omission, ...], tell: Callable[[str], None]
) -> tuple[tuple[ReferenceRun, ...], tuple[AblationRow, ...]]:
    """Run all lives, those that do not need one another side by side."""
    orders = tuple(dict.fromkeys(omission.order for omission in omissions))
    beginnings = {_beginning(omission): omission for omission in omissions}
    with Lanes() as lanes:
        tell(f"{course.steps} steps at once, for each order of batches …")
        found = lanes.run([partial(experiment.run_reference, order) for order in orders])
        references = dict(zip(orders, found, strict=True))
        tell(f"{course.seam} steps, then SIGKILL right after the save …")
        killed = lanes.run(
            [partial(experiment.run_first_life, one, references[one.order]) for one in beginnings.values()]
        )
        firsts: dict[tuple[str, str], FirstLife] = dict(zip(beginnings, killed, strict=True))
        tell(f"resumed from those files, {len(omissions)} times, each time with something left out, or nothing …")
        rows = lanes.run(
            [partial(experiment.run_row, one, firsts[_beginning(one)], references[one.order]) for one in omissions]
        )
    return tuple(found), tuple(rows)


def _beginning(omission: Omission) -> tuple[str, str]:
    """Return what the lives before the seam are told apart by."""
    return omission.order, omission.save


def _tidy(trials: Path) -> None:
    """Remove what was only needed on the way; the references' files stay, and what every life printed."""
    for path in (*trials.glob("reference-*/weights"), *trials.glob("first-*/out"), *trials.glob("*/life-*/scratch")):
        shutil.rmtree(path)


def leave(ablation: Ablation, tell: Callable[[str], None]) -> None:
    """Leave the result, and the plot if there is to be one; HarnessError where the disk does not take them."""
    path = Path(ablation.run_dir) / RESULT
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(ablation)))
        if ablation.plot:
            draw(ablation, Path(ablation.plot))
        else:
            tell(f"no plot: {HOW_TO_GET}")
    except OSError as error:
        message = f"the result cannot be written: {error.strerror}: {error.filename or path}"
        raise HarnessError(message, hint="choose another place, or free some space") from error

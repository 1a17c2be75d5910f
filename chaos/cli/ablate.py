"""`chaos ablate`: the lesson's experiment in figures."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from chaos.ablation.conducting import AskedAblation, ablate
from chaos.ablation.omissions import OMISSIONS, Course, chosen
from chaos.cli.place import place_options
from chaos.reports.ablation_plot import require_plot
from chaos.reports.ablation_table import print_ablation

_ROWS = ", ".join(omission.name for omission in OMISSIONS)


@click.command(
    "ablate",
    epilog="Exit status: 0 the intact rows end with the reference's bits, every other row does not, and the sizes are "
    "as told; 1 they are not; 2 wrong usage; 3 chaos itself failed; 4 the trainer does not repeat itself here.",
)
@click.option("--steps", type=click.IntRange(3, 400), default=60, show_default=True, help="Steps of the whole run.")
@click.option("--seam", type=click.IntRange(1), help="The step after whose save it is killed (default: half of them).")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="The trainer's seed.")
@click.option("--only", multiple=True, metavar="ROW", help=f"Only this row; may be repeated. Rows: {_ROWS}.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the plot goes, .svg or .png (default: ablation.svg in the run's folder, where matplotlib is there).",
)
@place_options
def command(
    *, steps: int, seam: int | None, seed: int, only: tuple[str, ...], plot: Path | None, root: Path, is_json: bool
) -> int:
    """See what each omission in a resume file costs: 60 steps at once against 30 + 30, on the bundled trainer.

    A run is killed when step 30 is saved, and resumed from the very same files again and again: with all of its state,
    with the weights alone, without the optimizer, the batch order, the generators, the step, and in half precision.
    """

    def tell(line: str) -> None:
        click.echo(line, err=True)

    asked = AskedAblation(
        course=Course(steps=steps, seam=steps // 2 if seam is None else seam, seed=seed),
        omissions=chosen(only),
        root=root,
        plot=None if plot is None else require_plot(plot),
    )
    ablation = ablate(asked, tell)
    if is_json:
        click.echo(msgspec.json.encode(ablation))
    else:
        print_ablation(ablation, sys.stdout)
    return 0 if ablation.came_out_as_told else 1

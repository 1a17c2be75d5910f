"""`python tests/benchmarks`: how many kills an hour, how many crash points, at what cost, beside the alternatives.

It needs the installed package and nothing of the clone but this folder; ckpt-chaos is measured too where it is
installed. The exit status is 1 where something that is there could not be measured, or a tool found fault with a
script that has none; no figure is asserted.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))  # so that `python -m tests.benchmarks` finds its parts, too

from speed.comparison import compare
from speed.floor import FloorError
from speed.machine import num_cores
from speed.peer import find_peer
from speed.records import Report, Script, Sizes, Tool
from speed.tables import show

_WIDTH = 160
# Steps and width of the scripts that the probe's cost is measured in: 0.3 and 20 million parameters.
_PROBED = ((1500, 272), (60, 2236))


@click.command()
@click.option("--jobs", type=click.IntRange(1), default=num_cores, help="Workers of every tool (default: the cores).")
@click.option("--peer-jobs", type=click.IntRange(1), default=1, show_default=True, help="Workers of ckpt-chaos.")
@click.option("--plain-kills", type=click.IntRange(1), default=20, show_default=True, help="Kills of the plain loop.")
@click.option("--kills", type=click.IntRange(1), default=20, show_default=True, help="Kills with fresh lives.")
@click.option("--warm-kills", type=click.IntRange(1), default=200, show_default=True, help="Kills with warm lives.")
@click.option("--budget-s", type=click.IntRange(1), default=60, show_default=True, help="Budget of chaos explore.")
@click.option("--pairs", type=click.IntRange(1), default=9, show_default=True, help="Pairs for the slow-down.")
@click.option(
    "--limit-s", type=click.FloatRange(1), default=600, show_default=True, help="Longest that a tool may take."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the schedules.")
@click.option("--steps", type=click.IntRange(2), default=60, show_default=True, help="Steps of the tiny script.")
@click.option("--every", type=click.IntRange(2), default=10, show_default=True, help="Steps between its saves.")
@click.option("--large-steps", type=click.IntRange(10), default=150, show_default=True, help="Steps of the larger one.")
@click.option("--large-width", type=click.IntRange(2), default=512, show_default=True, help="Width of its layers.")
@click.option("--large-batch", type=click.IntRange(1), default=256, show_default=True, help="Rows of its batches.")
@click.option(
    "--diff-bytes", type=click.IntRange(1 << 20), default=256 << 20, show_default=True, help="Of files to compare."
)
@click.option(
    "--probe-rounds", type=click.IntRange(1), default=5, show_default=True, help="Rounds for the cost of the probe."
)
@click.option(
    "--skip",
    type=click.Choice([tool.value for tool in Tool]),
    multiple=True,
    help="Leave this out; may be given again.",
)
@click.option("--ckpt-chaos", default="", metavar="COMMAND", help="Where ckpt-chaos is, if not beside this Python.")
@click.option("--profile", is_flag=True, help="Also say where the time of each campaign went.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object on standard output.")
def main(*, skip: tuple[str, ...], ckpt_chaos: str, profile: bool, is_json: bool, **numbers: Any) -> None:
    """Measure kills an hour, crash points and the cost of a kill, side by side, on one tiny training script."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that everything is ended and removed
    skipped = frozenset(Tool(name) for name in skip)
    try:
        with tempfile.TemporaryDirectory(prefix="9l-bench-", ignore_cleanup_errors=True) as folder:
            report = compare(_sizes(**numbers), Path(folder), peer=find_peer(ckpt_chaos), skipped=skipped, say=_say)
    except FloorError as error:
        raise click.ClickException(str(error)) from error
    _print(report, is_json=is_json, has_profile=profile)
    sys.exit(report.has_failed)


def _sizes(*, limit_s: float, **whole: int) -> Sizes:
    """Put the numbers of the command line together."""
    large_steps = whole.pop("large_steps")
    # Ten saves: as much as can be while saving takes well under a tenth of the time.
    large = Script(
        steps=large_steps, every=large_steps // 10, width=whole.pop("large_width"), batch=whole.pop("large_batch")
    )
    tiny = Script(steps=whole.pop("steps"), every=whole.pop("every"), width=32, batch=32)
    probed = tuple(Script(steps=steps, every=steps // 2, width=width, batch=32) for steps, width in _PROBED)
    fresh_kills = whole.pop("kills")
    return Sizes(limit_s=limit_s, fresh_kills=fresh_kills, tiny=tiny, large=large, probed=probed, **whole)


def _print(report: Report, *, is_json: bool, has_profile: bool) -> None:
    """Print the report as JSON or as tables; into a pipe as wide as the tables need."""
    if is_json:
        click.echo(msgspec.json.encode(report))
    else:
        show(report, Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False), has_profile=has_profile)


def _say(line: str) -> None:
    """Tell what is going on."""
    click.echo(f"{line} …", err=True)


if __name__ == "__main__":
    main()

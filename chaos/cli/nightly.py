"""`chaos nightly`: the stress job."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

import click
import msgspec

from chaos.complaints import Place
from chaos.nights import run_night
from chaos.reports.night import night_in_words
from chaos.runs import DEFAULT_ROOT
from chaos.settings import LivesKind, parse_duration


@click.command("nightly")
@click.option(
    "--budget", default="30m", show_default=True, help="How long the whole night may take, such as 90s or 1h."
)
@click.option("--kills", type=click.IntRange(1), default=10, show_default=True, help="Kills in each campaign.")
@click.option("--seed", type=click.IntRange(0), help="The seed that all campaigns' seeds come from (default: drawn).")
@click.option("--jobs", type=click.IntRange(1, 64), help="Trials at a time (default: the cores, at most 8).")
@click.option(
    "--lives",
    type=click.Choice(["fresh", "warm"]),
    default="warm",
    show_default=True,
    help="How lives are started; see `chaos run --help`.",
)
@click.option("--runs", "root", type=click.Path(path_type=Path), default=DEFAULT_ROOT, help="Where runs are kept.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object on standard output.")
def command(
    *, budget: str, kills: int, seed: int | None, jobs: int | None, lives: str, root: Path, is_json: bool
) -> int:
    """Run every shipped scenario over and over, with fresh seeds, until the budget is spent.

    The run folders of campaigns that did not come out as expected are kept, the others removed. The exit status is
    the worst campaign's.
    """
    budget_s = parse_duration(budget, place=Place(source="command line", is_command_line=True))
    chosen = secrets.randbits(32) if seed is None else seed
    click.echo(f"seed {chosen}", err=True)
    night = run_night(
        root,
        seed=chosen,
        budget_s=budget_s,
        kills=kills,
        jobs=jobs,
        lives=LivesKind(lives),
        progress=sys.stderr,
        tell=lambda line: click.echo(line, err=True),
    )
    click.echo(msgspec.json.encode(night) if is_json else night_in_words(night))
    return night.status

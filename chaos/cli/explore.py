"""`chaos explore`: not a sample of crash points but all of them."""

from __future__ import annotations

import sys
from typing import Any

import click

from chaos.cli.place import place_options
from chaos.cli.target import STOP_EARLY, WITHOUT_FSYNC, probe_option, scenario_of, target_options
from chaos.cli.words import CommandWithTarget, command_under_test
from chaos.errors import UsageError
from chaos.invocation import Asked, run_campaign
from chaos.journal import ExplorationPlan
from chaos.model import Enumeration
from chaos.settings import LivesKind, layer_from_command_line

_STATES_HELP = "At most so many states of a loss of power, for each point and file system."
_WORDS = ("all", "first", "last")


@click.command(
    "explore",
    cls=CommandWithTarget,
    options_metavar="[OPTIONS]",
    epilog="Exit status: 0 pass (or as the scenario expects), 1 fail, 2 wrong usage, 3 chaos itself failed, "
    "4 inconclusive, such as a budget that was too small for all states.",
)
@click.argument("scenario", required=False, metavar="[SCENARIO] [-- CMD …]")
@click.option("--saves", default="all", show_default=True, help="all, first, last, or the number of one save.")
@click.option("--depth", type=click.IntRange(1, 8), default=2, show_default=True, help="Kills in how many lives.")
@click.option("--all-tears", is_flag=True, help="Tear each write at all its page boundaries, not at three of them.")
@click.option(
    "--faults", help="kill, torn_write, power_loss, disk_full, io_error, short_write, bit_flip; default kill."
)
@click.option("--states", type=click.IntRange(1, 10_000), default=24, show_default=True, help=_STATES_HELP)
@click.option("--seed", type=int, help="Chooses hash seeds, and what is repeated with fresh lives.")
@click.option("--jobs", type=int, help="States at a time (default: the cores, at most 8).")
@click.option("--lives", type=click.Choice(["fresh", "warm"]), help="How lives are started (default warm).")
@click.option("--budget", help="Start nothing more after this long, such as 10m.")
@click.option("--max-bytes", help="Start nothing more when the run's folder holds this much, such as 2GB.")
@click.option("--deadline", "--deadline-s", "deadline_s", type=float, help="Seconds that one life may take.")
@target_options
@click.option("--strict", is_flag=True, default=None, help="Warnings fail too.")
@probe_option
@click.option("--stop-early", is_flag=True, default=None, help=STOP_EARLY)
@click.option("--without-fsync", is_flag=True, default=None, help=WITHOUT_FSYNC)
@click.option("--keep", is_flag=True, default=None, help="Keep the folders of clean trials too.")
@place_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:  # noqa: ANN401 - click gives the options by name
    """Try every crash state of a run: what a kill before each operation, and inside each write, leaves behind.

    One run is recorded; each state that a kill could leave is built, the target is started on it, and judged. Without
    SCENARIO and CMD the target is the bundled trainer.
    """
    words = command_under_test(ctx)
    root, is_json = options.pop("root"), options.pop("is_json")
    enumeration = Enumeration(has_all_tears=options.pop("all_tears"), num_losses=options.pop("states"))
    plan = ExplorationPlan(depth=options.pop("depth"), saves=_saves(options.pop("saves")), enumeration=enumeration)
    scenario = scenario_of(words, options)
    layer = layer_from_command_line(**options)
    asked = Asked(
        scenario=scenario, layer=layer, root=root, is_json=is_json, exploration=plan, default_lives=LivesKind.WARM
    )
    return run_campaign(asked, sys.stderr)


def _saves(text: str) -> str:
    """Check which saves are asked for."""
    if text in _WORDS or (text.isdecimal() and int(text) >= 1):
        return text
    message = f"--saves: `{text}` is no save"
    raise UsageError(message, hint="give all, first, last, or a number from 1 on")

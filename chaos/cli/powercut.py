"""`chaos powercut`: the power is really cut, on real file systems."""

from __future__ import annotations

import sys
from typing import Any

import click

from chaos.cli.place import place_options
from chaos.cli.target import scenario_of, target_options
from chaos.cli.words import CommandWithTarget, command_under_test
from chaos.invocation import Asked
from chaos.journal import PowerCutPlan
from chaos.powercut import read_kinds, run_powercut
from chaos.settings import layer_from_command_line

_FS_HELP = "File systems, parted by commas; mount options of one after a colon, parted by +."


@click.command(
    "powercut",
    cls=CommandWithTarget,
    options_metavar="[OPTIONS]",
    epilog="Exit status: 0 pass (or as the scenario expects), 1 fail, 2 wrong usage, 3 chaos itself failed (also where "
    "a file system cannot be used here, or left what the durability model lacks), 4 inconclusive.",
)
@click.argument("scenario", required=False, metavar="[SCENARIO] [-- CMD …]")
@click.option("--fs", "kinds", default="ext4,ext4:noauto_da_alloc,xfs,btrfs", show_default=True, help=_FS_HELP)
@click.option(
    "--cuts", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Power cuts on each file system."
)
@click.option("--seed", type=int, help="Rebuilds the same cuts (default: drawn, and printed).")
@click.option("--jobs", type=int, help="Trials at a time (default: the cores, at most 8).")
@click.option("--budget", help="Start no more trials after this long, such as 10m.")
@click.option("--max-bytes", help="Start no more trials when the run's folder holds this much, such as 2GB.")
@click.option("--deadline", "--deadline-s", "deadline_s", type=float, help="Seconds that one life may take.")
@target_options
@click.option("--strict", is_flag=True, default=None, help="Warnings fail too.")
@click.option("--keep", is_flag=True, default=None, help="Keep the output folders of clean trials too.")
@place_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:  # noqa: ANN401 - click gives the options by name
    """Cut the power for real while a training job saves, and see what the disk holds and whether the job comes back.

    Each trial runs on a file system of its own in an image file, which is stopped at an exact operation, mounted again,
    and looked at. Needs root, loop devices, and the file systems' mkfs. Without SCENARIO and CMD the target is the
    bundled trainer.
    """
    words = command_under_test(ctx)
    root, is_json, cuts = options.pop("root"), options.pop("is_json"), options.pop("cuts")
    kinds = read_kinds(options.pop("kinds"))
    plan = PowerCutPlan(kinds=tuple(map(str, kinds)), cuts=cuts)
    scenario = scenario_of(words, options)
    layer = layer_from_command_line(**options, kills=cuts * len(kinds), faults="power_loss", lives="fresh")
    asked = Asked(scenario=scenario, layer=layer, root=root, is_json=is_json)
    return run_powercut(asked, plan, sys.stderr)

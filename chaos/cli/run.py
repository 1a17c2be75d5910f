"""`chaos run`: kill a target again and again, and say whether it came back bit for bit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from chaos.cli.place import place_options
from chaos.cli.target import (
    DESCRIPTION,
    FINGERPRINTS,
    STOP_EARLY,
    WITHOUT_FSYNC,
    probe_option,
    scenario_of,
    target_options,
)
from chaos.cli.words import CommandWithTarget, command_under_test
from chaos.errors import UsageError
from chaos.invocation import Asked, dry_run, go_on, run_campaign
from chaos.model import FaultKind
from chaos.settings import layer_from_command_line


@click.command(
    "run",
    cls=CommandWithTarget,
    options_metavar="[OPTIONS]",
    epilog="Exit status: 0 pass (or as the scenario expects), 1 fail, 2 wrong usage, 3 chaos itself failed, "
    "4 inconclusive. With --json, an error is an object too, with the keys error, hint and exit_status.",
)
@click.argument("scenario", required=False, metavar="[SCENARIO] [-- CMD …]")
@click.option("--kills", type=int, help="How many kills, or faults of each kind, must land (default 20).")
@click.option("--faults", metavar="KIND[,KIND…]", help=f"What happens (default kill): {', '.join(FaultKind)}.")
@click.option("--seed", type=int, help="Rebuilds the same schedule (default: drawn, and printed).")
@click.option("--jobs", type=int, help="Trials at a time (default: the cores, at most 8).")
@click.option("--budget", help="Start no more trials after this long, such as 10m.")
@click.option("--max-bytes", help="Start no more trials when the run's folder holds this much, such as 2GB.")
@click.option(
    "--deadline", "--deadline-s", "deadline_s", type=float, help="Seconds that one life may take (default 600)."
)
@target_options
@click.option(
    "--lives",
    type=click.Choice(["fresh", "warm"]),
    help="warm: lives are forked from a template that has imported what the target imports, which is faster.",
)
@click.option("--strict", is_flag=True, default=None, help="Warnings fail too.")
@probe_option
@click.option("--stop-early", is_flag=True, default=None, help=STOP_EARLY)
@click.option("--fingerprints/--no-fingerprints", default=None, help=FINGERPRINTS)
@click.option("--without-fsync", is_flag=True, default=None, help=WITHOUT_FSYNC)
@click.option("--keep", is_flag=True, default=None, help="Keep the output folders of clean trials too.")
@click.option("--no-intercept", is_flag=True, default=None, help="Kill by step line and time; weaker guarantees.")
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Print the schedule and what it would cost; kill only the canary."
)
@click.option(
    "--continue", "is_continued", is_flag=True, help="Go on with the newest run (or the one named as SCENARIO)."
)
@place_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:  # noqa: ANN401 - click gives the options by name
    """Kill a training job at exact, seeded points, and prove that it comes back bit for bit.

    Without SCENARIO and CMD the target is the bundled trainer. After `--` stands a command of your own, with {out}
    where its output folder goes:

        chaos run --kills 20 --checkpoints '{out}/ckpt*.pt' --final '{out}/final.pt' -- python train.py {out}
    """
    words = command_under_test(ctx)
    root, is_json = options.pop("root"), options.pop("is_json")
    if options.pop("is_continued"):
        return _go_on(root, words, options, is_json=is_json)
    is_dry = options.pop("is_dry")
    scenario = scenario_of(words, options)
    asked = Asked(scenario=scenario, layer=layer_from_command_line(**options), root=root, is_json=is_json)
    return dry_run(asked, sys.stderr) if is_dry else run_campaign(asked, sys.stderr)


def _go_on(root: Path, words: tuple[str, ...] | None, options: dict[str, Any], *, is_json: bool) -> int:
    """Go on with an earlier run; UsageError where the command line describes another target."""
    name = options.pop("scenario") or "latest"
    described = [f"--{key}" for key in (*DESCRIPTION, "is_dry") if options.pop(key)]
    if words is not None or described:
        what = "the command after `--`" if words is not None else described[0].replace("is_dry", "dry-run")
        message = f"{what} has no meaning with --continue: the earlier run has a target and a schedule already"
        raise UsageError(message, hint="leave it out, or start a new run without --continue")
    return go_on(root, name, layer_from_command_line(**options), is_json=is_json, progress=sys.stderr)

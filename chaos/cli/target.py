"""The options that describe a target, and the scenario that follows from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from chaos.errors import UsageError
from chaos.scenario import Scenario, load_scenario, scenario_from_command

DEFAULT_SCENARIO = "durable"
DESCRIPTION = ("checkpoints", "final", "ignore", "step", "saved")
FINGERPRINTS = "Run a lineage that diverged unseen again, with parts of its checkpoint reset (default: yes)."
STOP_EARLY = "Stop a recovery that goes, step by step, the way of one from the same files that ran to its end."
WITHOUT_FSYNC = "Answer fsync without carrying it out: a control, which must fail where power_loss is tried."
_OPTIONS = (
    click.option(
        "--checkpoints", multiple=True, metavar="GLOB", help="For -- CMD: the checkpoints, such as '{out}/ckpt*.pt'."
    ),
    click.option(
        "--final", multiple=True, metavar="GLOB", help="For -- CMD: the final files, such as '{out}/final.pt'."
    ),
    click.option("--ignore", multiple=True, metavar="GLOB", help="For -- CMD: files that are never judged."),
    click.option("--step", metavar="REGEX", help="For -- CMD: a step line; its first group is the step's number."),
    click.option("--saved", metavar="REGEX", help="For -- CMD: the line that acknowledges a save."),
)


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that describe a target."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def probe_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that bounds what the probe costs."""
    words = "Share of step time, in percent, that the probe may take to digest the state; 0 only counts (default 5)."
    return click.option("--probe-budget", type=float, metavar="PERCENT", help=words)(command)


def scenario_of(words: tuple[str, ...] | None, options: dict[str, Any]) -> Scenario:
    """Take the options that describe a target out of `options` and make a scenario of them, or load the named one."""
    name = options.pop("scenario")
    described = {key: options.pop(key) for key in DESCRIPTION}
    if words is None:
        given = [f"--{key}" for key, value in described.items() if value]
        if given:
            message = f"{given[0]} describes a command of your own, but there is none"
            raise UsageError(message, hint="put it after `--`, such as: … -- python train.py {out}")
        return load_scenario(name or DEFAULT_SCENARIO)
    if name is not None:
        message = f"give either the scenario `{name}` or a command after `--`, not both"
        raise UsageError(message, hint="a scenario's own [target] command can be changed in a copy of its file")
    return scenario_from_command(words, **described)

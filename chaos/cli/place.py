"""The options that say where runs are kept and how the answer is given, wherever campaigns are run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from chaos.runs import DEFAULT_ROOT

_OPTIONS = (
    click.option(
        "--runs",
        "root",
        type=click.Path(path_type=Path),
        default=DEFAULT_ROOT,
        help="Where runs are kept (default .chaos).",
    ),
    click.option("--json", "is_json", is_flag=True, help="Print one JSON object on standard output."),
)


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--runs` and `--json`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command

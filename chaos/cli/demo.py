"""`chaos demo`: a save torn by a kill, and the same kill survived; the same for a loss of power."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from chaos.demonstration import demonstrate
from chaos.power_demonstration import demonstrate_power_loss
from chaos.reports.demonstration import demonstration_in_words
from chaos.reports.power_demonstration import power_demonstration_in_words
from chaos.runs import DEFAULT_ROOT


@click.command("demo")
@click.argument("what", type=click.Choice(["kill", "power_loss"]), default="kill")
@click.option("--runs", "root", type=click.Path(path_type=Path), default=DEFAULT_ROOT, help="Where runs are kept.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object on standard output.")
def command(*, what: str, root: Path, is_json: bool) -> int:
    """See a save torn by a kill, or lost with the power, and the same survived by a durable one.

    WHAT is `kill` (the default) or `power_loss`. Exit status: 0 when both halves came out as told, else 1.
    """

    def tell(line: str) -> None:
        click.echo(line, err=True)

    if what == "kill":
        result = demonstrate(root, tell)
        click.echo(msgspec.json.encode(result) if is_json else demonstration_in_words(result))
        return 0 if result.came_out_as_told else 1
    shown = demonstrate_power_loss(root, tell)
    click.echo(msgspec.json.encode(shown) if is_json else power_demonstration_in_words(shown))
    return 0 if shown.came_out_as_told else 1

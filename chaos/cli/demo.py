"""`chaos demo`: a save torn by a kill, and the same kill survived."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from chaos.demonstration import demonstrate
from chaos.reports.demonstration import demonstration_in_words
from chaos.runs import DEFAULT_ROOT


@click.command("demo")
@click.option("--runs", "root", type=click.Path(path_type=Path), default=DEFAULT_ROOT, help="Where runs are kept.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object on standard output.")
def command(*, root: Path, is_json: bool) -> int:
    """See a save torn by a kill, and the same kill survived by a durable one.

    Exit status: 0 when both came out as told, else 1.
    """
    result = demonstrate(root, lambda line: click.echo(line, err=True))
    click.echo(msgspec.json.encode(result) if is_json else demonstration_in_words(result))
    return 0 if result.came_out_as_told else 1

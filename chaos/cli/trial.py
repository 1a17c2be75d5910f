"""`chaos trial SPEC --out DIR`: run one trial from its specification; the unit of work for other engines."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from chaos.executors.bench import Bench
from chaos.executors.specification import read_specification, write_outcome
from chaos.model import Outcome


@click.command("trial")
@click.argument("specification", type=click.Path(path_type=Path))
@click.option("--out", "folder", type=click.Path(path_type=Path), required=True, help="The trial's folder.")
@click.option("--json", "is_json", is_flag=True, help="Print the outcome as one JSON object.")
def command(*, specification: Path, folder: Path, is_json: bool) -> None:
    """Run one trial from its specification and leave DIR/outcome.json."""
    with Bench() as bench:
        outcome = bench.run(read_specification(specification), folder.absolute())
    write_outcome(folder, outcome)
    click.echo(msgspec.json.encode(outcome) if is_json else _summary(outcome))


def _summary(outcome: Outcome) -> str:
    """Say what the trial did, in one line."""
    last = outcome.lives[-1]
    return f"{outcome.kills_landed} kills landed in {len(outcome.lives)} lives; the last one {last.end}"

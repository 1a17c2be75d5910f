"""`chaos list`: the shipped scenarios and what each claims."""

from __future__ import annotations

import shutil
import textwrap

import click
import msgspec

from chaos.model import SCHEMA, Expect, Record
from chaos.scenario import shipped_scenario, shipped_scenarios


class ListedScenario(Record, kw_only=True):
    """One line of the list."""

    name: str
    claim: str
    expect: Expect


class Listing(Record, kw_only=True):
    """What `chaos list --json` prints."""

    schema: int = SCHEMA
    scenarios: tuple[ListedScenario, ...]


@click.command("list")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def command(*, is_json: bool) -> None:
    """Show the shipped scenarios and what each claims."""
    scenarios = (shipped_scenario(name) for name in shipped_scenarios())
    listed = tuple(ListedScenario(name=one.name, claim=one.claim, expect=one.expect) for one in scenarios)
    if is_json:
        click.echo(msgspec.json.encode(Listing(scenarios=listed)))
    else:
        click.echo(_table(listed, width=min(shutil.get_terminal_size().columns, 120)))


def _table(listed: tuple[ListedScenario, ...], *, width: int) -> str:
    """Return the list as text: name, expected verdict, and the claim wrapped to `width` columns."""
    column = max(len(one.name) for one in listed) + 2
    lines = [f"{'scenario':{column}}{'expects':9}claim"]
    for one in listed:
        claim = textwrap.wrap(one.claim, max(width - column - 9, 20))
        lines.append(f"{one.name:{column}}{one.expect.verdict:9}{claim[0]}")
        lines.extend(" " * (column + 9) + rest for rest in claim[1:])
    return "\n".join(lines)

"""`chaos validate SCENARIO`: check a scenario, and that its programs exist, without running it."""

from __future__ import annotations

import click
import msgspec

from chaos.errors import UsageError
from chaos.model import SCHEMA, Record
from chaos.scenario import Scenario, load_scenario


class Validation(Record, kw_only=True):
    """What `chaos validate --json` prints: the scenario as it was understood, or what is wrong with it."""

    schema: int = SCHEMA
    is_valid: bool
    scenario: Scenario | None = None
    error: str = ""
    hint: str = ""


@click.command("validate")
@click.argument("scenario")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def command(*, scenario: str, is_json: bool) -> int:
    """Check SCENARIO, a TOML file or the name of a shipped scenario, without running it."""
    try:
        found = load_scenario(scenario)
    except UsageError as error:
        if not is_json:
            raise
        click.echo(msgspec.json.encode(Validation(is_valid=False, error=error.message, hint=error.hint)))
        return error.exit_status
    if is_json:
        click.echo(msgspec.json.encode(Validation(is_valid=True, scenario=found)))
    else:
        click.echo(f"{found.name}: valid\n  claim: {found.claim or 'none'}\n  expects: {found.expect.verdict}")
    return 0

"""`chaos schema`: the JSON Schema of a scenario file, for editors and generators."""

from __future__ import annotations

import click
import msgspec

from chaos.scenario import json_schema


@click.command("schema")
@click.option("--json", "is_json", is_flag=True, help="The same: a JSON Schema is JSON already.")
def command(*, is_json: bool) -> None:  # noqa: ARG001 - every command takes --json
    """Print the JSON Schema of a scenario file."""
    click.echo(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2))

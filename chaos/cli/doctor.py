"""`chaos doctor`: what this machine can and cannot do."""

from __future__ import annotations

import click
import msgspec

from chaos.diagnostics import Ability, Diagnosis, diagnose


@click.command("doctor")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object on standard output.")
def command(*, is_json: bool) -> int:
    """Say what this machine can and cannot do for the tool, by trying it.

    Exit status: 0 when everything needed is there, else 3.
    """
    diagnosis = diagnose()
    click.echo(msgspec.json.encode(diagnosis) if is_json else _in_words(diagnosis))
    return 0 if diagnosis.is_well else 3


def _in_words(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as text."""
    here = diagnosis.environment
    versions = ", ".join(f"{name} {version}" for name, version in here.packages.items())
    lines = [f"Python {here.python} on {here.machine}, kernel {here.kernel}, {here.cores} cores", versions]
    lines += [_line(ability) for ability in diagnosis.abilities]
    return "\n".join(lines)


def _line(ability: Ability) -> str:
    """Return one ability's line."""
    word = "yes" if ability.is_there else ("NO" if ability.is_needed else "no")
    return f"{word:<4}{ability.name}: {ability.detail}"

"""`chaos replay RUN/TRIAL`: run one trial of an earlier run again."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from chaos.errors import UsageError
from chaos.replaying import replay
from chaos.reports.replay import print_replay
from chaos.runs import DEFAULT_ROOT, find_run, open_run


@click.command("replay")
@click.argument("trial", metavar="RUN/TRIAL")
@click.option("--runs", "root", type=click.Path(path_type=Path), default=DEFAULT_ROOT, help="Where runs are kept.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object on standard output.")
def command(*, trial: str, root: Path, is_json: bool) -> int:
    """Run one trial of an earlier run again, such as `latest/7`.

    The schedule is the stored one, so the kills strike where they struck then. Exit status: 0 when nothing is wrong
    with the trial now, 1 when the checks find something.
    """
    run, _, number = trial.rpartition("/")
    if not run or not number.isdigit():
        message = f"`{trial}` is no RUN/TRIAL"
        raise UsageError(message, hint="write it as a failing run prints it, such as latest/7")
    folder = find_run(root, run)
    with open_run(folder) as (_, events):
        result = replay(folder, events, int(number))
    if is_json:
        click.echo(msgspec.json.encode(result))
    else:
        print_replay(result, sys.stderr)
    return 1 if result.findings else 0

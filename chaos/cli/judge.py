"""`chaos judge DIR`: work a run's verdict out again from its journal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from chaos.invocation import rejudge, report
from chaos.powercut import is_power_cut, report_cuts
from chaos.runs import DEFAULT_ROOT, find_run


@click.command("judge")
@click.argument("run")
@click.option("--runs", "root", type=click.Path(path_type=Path), default=DEFAULT_ROOT, help="Where runs are kept.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object on standard output.")
def command(*, run: str, root: Path, is_json: bool) -> int:
    """Work the verdict of RUN (an id, `latest`, or a folder) out again from its journal."""
    folder = find_run(root, run)
    if is_power_cut(folder):
        return report_cuts(folder, is_json=is_json, progress=sys.stderr)
    return report(rejudge(folder), is_json=is_json, progress=sys.stderr)

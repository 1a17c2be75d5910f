"""`chaos diff A B`: two checkpoints compared bit by bit."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from chaos.checkpoints.process import Examiner
from chaos.reports.diff import print_difference

DIFFERENT = 1


@click.command("diff")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--ignore", "ignored", metavar="GLOB", multiple=True, help="Leave these names out; may be given again.")
@click.option(
    "--limit", type=click.IntRange(0), default=5, show_default=True, help="Differing names shown of each component."
)
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object on standard output.")
def command(*, a: Path, b: Path, ignored: tuple[str, ...], limit: int, is_json: bool) -> int:
    """Compare the checkpoints A and B bit by bit: 0.0 is not -0.0, and NaNs have payloads.

    A and B are files of torch.save, safetensors, npz, npy, pickle or JSON, or folders of these, also of
    torch.distributed.checkpoint. They are read without being executed, and checksums inside of them are verified.

    The answer tells the parts of the training's state apart (weights, each kind of optimizer state, generators,
    counters, ...), and says what the difference looks like, such as "B's weights equal A's rounded to float16". A name
    to ignore is one as it is shown: `--ignore 'optimizer.*'`, `--ignore '*/__metadata__.*'`.

    The kinds of containers (a list, a tuple) and their nesting (`a.b` in one dict or in two) are not compared.

    Exit status: 0 equal in every bit, 1 different, 2 one of them cannot be compared.
    """
    with Examiner() as examiner:
        difference = examiner.diff(a, b, ignored, limit)
    for glob in difference.unmatched:
        click.echo(f"Note: --ignore '{glob}' matches no name in either of them.", err=True)
    if is_json:
        click.echo(msgspec.json.encode(difference))
    else:
        print_difference(difference, sys.stdout)
    return 0 if difference.equal else DIFFERENT

"""`python tests/filesystems`: the durability model, held against real file systems, thoroughly.

Every save pattern is run on every file system that can be used here, several times, cut at every operation after
different nudges; every image must be in the model's set. For each pattern and file system it prints how many cuts were
taken, how many distinct images and folders they gave, how many states the model allows when a save of 12,288 bytes is
over, how many of its states were built and looked at, and how many of the unsafe states that it must have were really
seen. The exit status is 1 where something is wrong. It needs root.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import click
import msgspec

sys.path.insert(0, str(Path(__file__).parent))  # so that `python -m tests.filesystems` finds its parts, too

from cutting.bench import Bench, in_memory
from cutting.examining import LARGE_BYTES, SMALL_BYTES, Effort, Examined, examine
from cutting.patterns import PATTERNS
from cutting.schedules import THOROUGH
from cutting.tables import complaints, head, line
from cutting.warmth import torch_starter

from chaos.errors import ChaosError
from chaos.images import DEFAULT_KINDS, ImageKind, find_usable, parse_kind

_LEAST_CUTS = 20
_MOST_COMPLAINTS = 20


@click.command()
@click.option("--fs", "kinds", default=",".join(map(str, DEFAULT_KINDS)), show_default=True, help="File systems.")
@click.option("--pattern", "names", multiple=True, type=click.Choice(list(PATTERNS)), help="Only this; again for more.")
@click.option("--states", type=click.IntRange(1), default=1000, show_default=True, help="Of the model, to be built.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON list on standard output.")
def main(*, kinds: str, names: tuple[str, ...], states: int, is_json: bool) -> None:
    """Cut every save pattern on real file systems, and ask the durability model about every image."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    started = time.monotonic()
    effort = Effort(schedules=THOROUGH, sizes=(SMALL_BYTES, LARGE_BYTES), states=states)
    try:
        wanted = tuple(parse_kind(kind) for kind in kinds.split(","))
        missing = [usable for usable in find_usable(wanted) if not usable.is_usable]
        for usable in missing:
            click.echo(f"{usable.kind} is left out: {usable.reason}", err=True)
        left_out = {usable.kind for usable in missing}
        found = _run([kind for kind in wanted if str(kind) not in left_out], names or tuple(PATTERNS), effort)
    except ChaosError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_status)
    if is_json:
        click.echo(msgspec.json.encode(found))
    wrong = sum(not one.is_right for one in found)
    cuts = sum(one.cuts for one in found)
    click.echo(f"{len(found)} in {time.monotonic() - started:.0f} s, {cuts:,} cuts, {wrong} wrong", err=True)
    sys.exit(1 if wrong or missing or not found else 0)


def _run(kinds: list[ImageKind], names: tuple[str, ...], effort: Effort) -> list[Examined]:
    """Examine the patterns on every kind of image, and print each as it is done."""
    found = []
    with tempfile.TemporaryDirectory(prefix="9l-") as folder, ExitStack() as stack:
        memory = stack.enter_context(in_memory(Path(folder) / "memory"))
        starter = stack.enter_context(torch_starter()) if any(PATTERNS[name].has_torch for name in names) else None
        click.echo(head(), err=True)
        for kind in kinds:
            (memory / str(kind)).mkdir()
            bench = Bench(memory / str(kind), kind)
            for name in names:
                pattern = PATTERNS[name]
                one = examine(bench, pattern, effort, starter if pattern.has_torch else None)
                if one.cuts < _LEAST_CUTS:
                    too_few = f"{one.cuts} cuts are too few to say anything"
                    one = msgspec.structs.replace(one, complaints=(*one.complaints, too_few))
                found.append(one)
                click.echo("\n".join([line(one), *complaints(one, _MOST_COMPLAINTS)]), err=True)
    return found


if __name__ == "__main__":
    main()

"""What the demonstration of a loss of power showed, and how `chaos demo power_loss` tells it in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model import SCHEMA, FileState, Record
from chaos.reports.demonstration import files_in_words

_DIFFERENCE = """\
     with open("resume.pt.tmp", "wb") as file:
         torch.save(state, file)
+        file.flush()
+        os.fsync(file.fileno())       # the bytes, before the name
     os.replace("resume.pt.tmp", "resume.pt")
+    os.fsync(folder)                  # the name, before anybody is told"""


class Half(Record, kw_only=True):
    """One trainer whose power went: what was there before, what after it, what the next start made of it.

    `before` and `after` are the checkpoints at the last acknowledged save and after the loss; `missing` are the calls
    that would have kept them.
    """

    scenario: str
    acknowledged_step: int | None
    before: tuple[FileState, ...]
    after: tuple[FileState, ...]
    missing: tuple[str, ...]
    restart_status: int | None
    restart_first_step: int | None
    restart_said: str
    is_same_bits: bool


class PowerDemonstration(Record, kw_only=True):
    """Both trainers by the rules of XFS (`model`), and on a real XFS (`real`: empty where `not_real` says why)."""

    schema: int = SCHEMA
    model: tuple[Half, Half]
    real: tuple[Half, ...]
    not_real: str
    came_out_as_told: bool
    run_dir: str


def is_lost(half: Half) -> bool:
    """Tell whether no whole checkpoint was left."""
    return not any(state.is_whole for state in half.after)


def power_demonstration_in_words(demonstration: PowerDemonstration) -> str:
    """Return the whole story."""
    return "\n".join(_lines(demonstration))


def _lines(demonstration: PowerDemonstration) -> Iterator[str]:
    """Yield its lines."""
    yield ""
    yield "The difference between the two trainers (the lines with a + are the durable one's):"
    yield ""
    yield _DIFFERENCE
    yield ""
    yield "What can be there after the power went, by the rules of XFS, in the worst case:"
    for half in demonstration.model:
        yield from _half(half)
    yield ""
    if demonstration.real:
        yield "What was there after the power of a real XFS was cut, and it was mounted again:"
        for half in demonstration.real:
            yield from _half(half)
        if not is_lost(demonstration.real[0]):
            yield ""
            yield "   (The first one was lucky: something else on this machine had the disk written in time.)"
    else:
        yield f"(Not shown on a real XFS: {demonstration.not_real})"
    yield ""
    yield _moral(demonstration)


def _half(half: Half) -> Iterator[str]:
    """Yield the lines of one trainer."""
    yield ""
    yield f"   {half.scenario}: it had said `saved step {half.acknowledged_step}`. As every process saw the disk then:"
    yield from files_in_words(half.before)
    yield "   The power goes. On the disk now:"
    yield from files_in_words(half.after)
    if not half.after:
        yield "     nothing"
    if half.missing:
        yield f"   What was missing: {'; '.join(half.missing)}."
    if half.restart_status == 0:
        bits = "the same bits as" if half.is_same_bits else "OTHER bits than"
        yield f"   Started again, it goes on at step {half.restart_first_step}, and ends with {bits}"
        yield "   the uninterrupted run."
    else:
        yield f"   Started again, it ends with status {half.restart_status}:"
        yield f"     {half.restart_said}"


def _moral(demonstration: PowerDemonstration) -> str:
    """Say what follows."""
    if demonstration.came_out_as_told:
        return (
            "So: a rename alone survives a kill, and does not survive the loss of power; two fsyncs do.\n"
            "Next: chaos explore --faults power_loss --saves 2, or chaos powercut, with a command of your own"
        )
    return f"This did NOT come out as told. Look at {demonstration.run_dir}, and please report it."

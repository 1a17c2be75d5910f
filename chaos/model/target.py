"""What is under test: the command, where its files are, how its output is read."""

from __future__ import annotations

import msgspec

from chaos.model.record import Record

# A line that begins with the step, after no more than marks, times, an epoch, or what loggers put there: so not
# "resumed at step 30". In JSON the key may come anywhere, unless a value tells of something else than a step done. The
# one group that takes part is the step's number.
_BEFORE_STEP = r"(?:debug|info|warn(?:ing)?|root|main|train(?:er|ing)?|epoch|rank)(?![a-z])"
_STEP_WORD = r"(?:global[_ ])?(?:step|iter(?:ation)?)"
_NO_STEP_TOLD = r"(?!.*:\s*[\"'][^\"']*\b(?:sav|resum|restor|load|start|checkpoint))"
DEFAULT_STEP = (
    rf"(?i)^(?:(?:[\W\d_]|{_BEFORE_STEP})*?{_STEP_WORD}[ =:]*(\d+)"
    rf"|(?:[^\w{{]|[\d_]|{_BEFORE_STEP})*?(?:\{{{_NO_STEP_TOLD}.*?)?"
    rf"[\"'](?:train(?:er)?/)?{_STEP_WORD}[\"'][ =:]*(\d+))"
)


class Target(Record, kw_only=True):
    """The command under test and where its files are; globs are relative to the output folder."""

    command: tuple[str, ...]
    resume_command: tuple[str, ...]
    no_save_command: tuple[str, ...] = ()
    checkpoints: tuple[str, ...]
    final: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    step: str = DEFAULT_STEP
    saved: str = r"(?i)\bsaved\b.*?\bstep[ =:]*(\d+)"
    verify: tuple[str, ...] = ()
    deadline_s: float = 600.0
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cwd: str = ""

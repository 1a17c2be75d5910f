"""When a recovery may be stopped before its end: only beside a twin that ran to its own end; pure.

The twin began from the same visible files, byte for byte, and each step so far has the twin's digest of everything that
training depends on. A recovery that agrees with the reference alone is not stopped: a training that skips data in later
epochs agrees with it for all steps of its first one.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.model import FinishedRecovery

LEAST_STEPS = 2


def may_stop(twin: FinishedRecovery | None, files: str, steps: Sequence[str]) -> bool:
    """Tell whether a recovery from `files` (a digest) that has done `steps` (a digest each) will end as its twin did.

    A step without a digest (an empty text) is one that nobody can compare: then it may not be stopped.
    """
    if twin is None or not files or twin.files != files:
        return False
    if not LEAST_STEPS <= len(steps) < len(twin.steps) or not all(steps):
        return False
    return tuple(steps) == twin.steps[: len(steps)]

"""A bound on the states holds for the work, too: what comes out the same in many ways is not gone through for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.model import FileSystem
from chaos.states.durability import enumerating
from chaos.states.durability.enumerating import losses_at
from chaos.states.durability.history import History
from chaos.states.durability.reaching import Reach

from .conftest import Script

LIMIT = 8


def test_files_rewritten_with_the_same_bytes(script: Callable[[], Script], monkeypatch: pytest.MonkeyPatch) -> None:
    """Three names, each published ten times without a sync of the folder: 11 ** 3 outcomes, two states to be seen."""
    one = script()
    one.make("a", b"x")
    one.begun()
    for _ in range(10):
        for name in ("a", "b", "c"):
            one.make(f"{name}.tmp", b"x")
            one.sync(f"{name}.tmp")
            one.rename(f"{name}.tmp", name)
    looks = 0

    class Counted(Reach):
        """Counts the outcomes of names that are looked at."""

        def __init__(self, *arguments: object) -> None:
            """Count one."""
            nonlocal looks
            looks += 1
            super().__init__(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(enumerating, "Reach", Counted)
    with one.close() as recording:
        history = History(recording, (FileSystem.POSIX,))
        history.advance(recording.num_operations)
        losses = losses_at(history, LIMIT)
    assert losses.is_cut
    assert 0 < len(losses.found) <= LIMIT
    assert looks <= LIMIT * 8 + 1

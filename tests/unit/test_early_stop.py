"""A recovery is stopped early beside its twin alone, and only while everything agrees."""

from __future__ import annotations

import pytest

from chaos.early_stop import may_stop
from chaos.model import FinishedRecovery

TWIN = FinishedRecovery(files="f", steps=("a", "b", "c", "d"))


@pytest.mark.parametrize(
    ("twin", "files", "steps", "expected"),
    [
        (TWIN, "f", ("a", "b"), True),
        (TWIN, "f", ("a", "b", "c"), True),
        (TWIN, "f", ("a",), False),
        (TWIN, "f", (), False),
        (TWIN, "f", ("a", "x"), False),
        (TWIN, "f", ("x", "b"), False),
        (TWIN, "f", ("a", ""), False),
        (TWIN, "f", ("a", "b", "c", "d"), False),
        (TWIN, "g", ("a", "b"), False),
        (None, "f", ("a", "b"), False),
        (FinishedRecovery(files="", steps=("a", "b", "c")), "", ("a", "b"), False),
        (FinishedRecovery(files="f", steps=("", "", "")), "f", ("", ""), False),
    ],
)
def test_all_conditions_must_hold(
    twin: FinishedRecovery | None,
    files: str,
    steps: tuple[str, ...],
    expected: bool,  # noqa: FBT001 - pytest gives it by name
) -> None:
    """The same files, at least two steps, each with a digest, each the twin's, and something left to save."""
    assert may_stop(twin, files, steps) is expected

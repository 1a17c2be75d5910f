"""A target under interception must see what it would see without, and the log must explain the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from chaos.intercept.syscalls import this_machine
from chaos.model import LifeEnd


def test_every_call_behaves_as_without_interception(lives: Callable[..., Any], tree: Callable[..., Any]) -> None:
    """All kinds of calls, right and wrong ones, return the same, print the same and leave the same files."""
    numbers = json.dumps(this_machine().numbers)
    seen = {}
    for is_polled in (True, False):
        runner = lives("calls.py", numbers)
        record = runner.run(is_polled=is_polled).record
        assert (record.end, record.exit_status) == (LifeEnd.EXITED, 0), runner.output("stderr")
        seen[is_polled] = runner.output().splitlines(), tree(runner.out)
    assert seen[False][0] == seen[True][0]
    assert seen[False][1] == seen[True][1]
    assert seen[False][0][-1] == "done"
    assert record.unseen_writers == ()

"""A target under interception must see what it would see without, and the log must explain the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from chaos.intercept import session
from chaos.intercept.decode import Call, decode
from chaos.intercept.memory import TargetGoneError
from chaos.intercept.syscalls import this_machine
from chaos.model import LifeEnd, OperationKind


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


def test_a_thread_that_cannot_be_looked_into_is_let_run(
    lives: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel denies a look at the target, its call runs and is counted as foreign: nobody waits for ever."""

    def denied(*arguments: Any) -> Call:
        call = decode(*arguments)
        if call.name == "fsync":
            raise TargetGoneError
        return call

    monkeypatch.setattr(session, "decode", denied)
    record = lives("saver.py", "main").run(deadline_s=10).record
    assert (record.end, record.exit_status) == (LifeEnd.EXITED, 0)
    assert record.foreign_calls == 6


def test_a_flood_of_output_hides_no_step(lives: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the log keeps no more long texts, what is printed is still read, and short lines are kept."""
    monkeypatch.setattr(session, "_TEXT_IN_LOG_CHARACTERS", 5000)
    result = lives("odd.py", "flood").run()
    assert (result.record.steps, result.record.last_step) == (3, 3)
    texts = [len(operation.text) for operation in result.log if operation.kind is OperationKind.OUTPUT]
    assert texts == [2001, 2001, 0, 0, 7, 7, 7]

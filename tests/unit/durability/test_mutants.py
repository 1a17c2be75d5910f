"""Take any rule of the model away, weaken it, or make it too strong: the table or a small log comes out otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from .brute_force import survivors
from .conftest import after_loss, played
from .mutants import OF_RULES, Mutant
from .mutants_of_bytes import OF_BYTES
from .mutants_of_names import OF_NAMES
from .patterns import outcomes, spelled
from .small_logs import LOGS
from .table import TABLE


def is_as_expected(folder: Path, mutant: Mutant) -> bool:
    """Tell whether the line or log that a mutant is caught by comes out as it must."""
    file_system = mutant.file_system
    if isinstance(mutant.line, str):
        log = LOGS[mutant.line]
        with played(folder, log.steps, len(log.before)) as recording:
            return all(
                set(after_loss(recording, index, file_system))
                == survivors(log.steps, len(log.before), index, file_system.value)
                for index in range(len(log.after) + 1)
            )
    line = next(line for line in TABLE if (line.pattern, line.how) == mutant.line)
    before, after = line.of(file_system)
    return outcomes(folder, line.pattern, line.how, file_system) == (spelled(before), spelled(after))


@pytest.mark.parametrize("mutant", [*OF_RULES, *OF_NAMES, *OF_BYTES], ids=str)
def test_a_mutant_is_caught(tmp_path: Path, mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes out right with the model, and otherwise with the mutant."""
    assert is_as_expected(tmp_path / "model", mutant)
    mutant.apply(monkeypatch)
    assert not is_as_expected(tmp_path / "mutant", mutant)

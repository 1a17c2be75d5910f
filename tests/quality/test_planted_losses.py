"""Trainings whose resume loses something: each loss is named, at its step, and nothing else is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # its parts are no package of the suite

from losses_bench import (
    LOSSES,
    Loss,
    LossesBench,
    diagnosis_of,
    faults_of_diagnosis,
    faults_of_recording,
    read_losses,
)

LOST = read_losses()
FEWEST_LOSSES = 20
FEWEST_INTACT = 4


@pytest.fixture(scope="module")
def bench() -> Iterator[LossesBench]:
    """Give one bench, with its warm template, for all losses."""
    with LossesBench() as one:
        yield one


@pytest.mark.parametrize("loss", [pytest.param(loss, id=loss.name) for loss in LOST])
def test_what_was_lost_is_named_and_nothing_else(loss: Loss, bench: LossesBench, tmp_path: Path) -> None:
    """After one kill, the diagnosis says which state was lost, how, and at which step; of an intact resume, nothing."""
    recorded = bench.recorded(loss, tmp_path)
    assert faults_of_recording(loss, recorded) == []
    diagnosis = diagnosis_of(recorded)
    assert faults_of_diagnosis(loss, diagnosis) == [], diagnosis


def test_table_and_scripts_are_of_one_mind() -> None:
    """Each script has an intact entry, and each of its losses one; there are enough of both to score by."""
    entries = {(loss.command[0], loss.command[-1] if "--lose" in loss.command else "") for loss in LOST}
    scripts = sorted(path for path in LOSSES.glob("*.py") if path.name != "saving.py")
    offered = {(path.name, lost) for path in scripts for lost in ("", *_losses_of(path))}
    assert entries == offered
    assert len(entries) == len({loss.name for loss in LOST}) == len(LOST)
    assert sum(bool(loss.expect) for loss in LOST) >= FEWEST_LOSSES
    assert sum(loss.is_intact for loss in LOST) >= FEWEST_INTACT


def _losses_of(script: Path) -> list[str]:
    """Return the words that a script's `LOSSES` holds."""
    _, _, after = script.read_text(encoding="utf-8").partition("LOSSES = (")
    words, _, _ = after.partition(")")
    return [word.strip().strip('"') for word in words.split(",") if word.strip()]

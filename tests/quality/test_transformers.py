"""An unmodified transformers Trainer: warm lives and fresh ones leave the same states and end with the same bits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.journal import ReferenceRecorded, TrialFinished, TrialRepeated, read_events
from chaos.model import FileRole, LifeEnd, TrialKind

pytest.importorskip("transformers", reason="this needs the extra `transformers`: pip install '.[test,transformers]'")

SCRIPT = Path(__file__).with_name("targets") / "hf_trainer.py"
GLOBS = ("--checkpoints", "{out}/checkpoint-*", "--final", "{out}/final/model.safetensors")


def facts(folder: Path) -> dict[int, list[Any]]:
    """Return of each trial's lives the end, the steps and the final bits.

    Crash states are compared within the warm campaign, with its fresh repetition: they hold paths of their run.
    """
    found = {}
    for event in read_events(folder / "runs" / "latest"):
        if isinstance(event, TrialFinished) and event.outcome.trial.kind in (TrialKind.CONTROL, TrialKind.FAULTED):
            found[event.outcome.trial.number] = [
                (
                    life.end,
                    life.exit_status,
                    life.steps,
                    [state.digest for state in life.crash_state if state.role is FileRole.FINAL],
                )
                for life in event.outcome.lives
            ]
    return found


def test_warm_and_fresh_lives_are_the_same(tmp_path: Path, run_campaign: Callable[..., Any]) -> None:
    """The same schedule with both kinds of lives: the same verdict, findings and final bits."""
    seen = {}
    for lives in ("fresh", "warm"):
        folder = tmp_path / lives
        folder.mkdir()
        words = ("--lives", lives, *GLOBS, "--", sys.executable, str(SCRIPT), "{out}")
        campaign = run_campaign(folder, *words, seed=2, kills=4)
        assert campaign.result["kills_landed"] == 4, campaign.explain()
        assert campaign.result["reference"]["deterministic"], campaign.explain()
        findings = sorted((found["check"], found["crash_point"]) for found in campaign.result["findings"])
        seen[lives] = (campaign.result["verdict"], findings, campaign.result["kills_by_phase"], facts(folder))
    assert seen["fresh"] == seen["warm"]
    events = read_events(tmp_path / "warm" / "runs" / "latest")
    assert any(isinstance(event, TrialRepeated) for event in events)


def test_intact_resume_is_the_reference_in_every_digest(tmp_path: Path, run_campaign: Callable[..., Any]) -> None:
    """A life that resumed from a checkpoint steps with what the reference stepped with there, in every component."""
    words = (*GLOBS, "--probe-budget", "100", "--", sys.executable, str(SCRIPT), "{out}")
    campaign = run_campaign(tmp_path, *words, seed=2, kills=4)
    events = read_events(tmp_path / "runs" / "latest")
    reference = next(event.reference for event in events if isinstance(event, ReferenceRecorded))
    assert len(reference.steps) == 24
    assert all(record.is_digested and record.samples != ((),) for record in reference.steps)
    finished = [event.outcome for event in events if isinstance(event, TrialFinished)]
    resumed = [life for outcome in finished for life in outcome.lives[1:] if life.steps and life.end is LifeEnd.EXITED]
    starts = {run.reference for life in resumed for run in life.step_runs}
    assert starts, campaign.explain()
    assert starts <= {6, 12, 18}
    assert all(len(life.step_runs) == 1 and not life.step_records for life in resumed)

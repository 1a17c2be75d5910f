"""Every shipped scenario comes out as it expects: the wrong ways of the bundled trainer are found and named.

With warm lives, which is faster; a lineage of each campaign is run once more with fresh ones and must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.journal import TrialRepeated, read_events
from chaos.scenario import shipped_scenarios

LOST = {"no_valid_checkpoint", "resume_crashed"}
DIVERGED = {"silent_divergence"}
HALF = ("weights", "of lower precision")
FAULTS = {"bit_rot": 2, "disk_full": 2, "durable_power": 4, "io_error": 4}
FOUND = {
    "no_fsync": LOST,
    "no_dir_fsync": {"acknowledged_lost"},
    "in_place": LOST,
    "half": DIVERGED,
    "minimind": DIVERGED,
    "forget_optimizer": DIVERGED,
    "forget_batch_order": {"data_repeated"},
    "forget_epoch_skip": {"data_skipped"},
    "forget_rng": DIVERGED,
    "forget_step": {"silent_divergence", "lost_work"},
}
# What the diagnosis names: all of it, and nothing else.
STATE = {
    "half": {HALF},
    "minimind": {HALF, ("torch generator", "rebuilt")},
    "forget_optimizer": {("optimizer state", "missing")},
    "forget_batch_order": {("data", "repeated")},
    "forget_epoch_skip": {("data", "skipped")},
    "forget_rng": {("torch generator", "rebuilt")},
    "forget_step": {("learning rate schedule", "rebuilt")},
}

KILLS = {"in_place": 4, "no_fsync": 6, "no_dir_fsync": 8}


def test_no_scenario_is_left_out() -> None:
    """All shipped scenarios are run below, but those of the durable trainer under kills, which other tests run."""
    assert set(shipped_scenarios()) - set(FOUND) - set(FAULTS) == {"durable", "durable_epoch"}


@pytest.mark.parametrize("name", FOUND)
def test_wrong_way_is_found(name: str, tmp_path: Path, run_campaign: Callable[..., Any]) -> None:
    """The failure is found with few kills, under the right name, and exit status 0 says that it was expected."""
    kills = KILLS.get(name, 1)
    campaign = run_campaign(tmp_path, name, "--lives", "warm", seed=1, kills=kills)
    assert (campaign.status, campaign.result["verdict"]) == (0, "fail"), campaign.explain()
    assert campaign.findings & FOUND[name], campaign.explain()
    assert campaign.result["kills_landed"] == kills * len(campaign.result["verdicts"])
    diagnoses = [found["diagnosis"] for found in campaign.result["findings"] if found["diagnosis"]]
    named = [{(lost["component"], lost["manner"]) for lost in diagnosis["lost"]} for diagnosis in diagnoses]
    assert all(one == STATE[name] for one in named), diagnoses
    assert bool(named) is (name in STATE)
    events = read_events(tmp_path / "runs" / "latest")
    assert any(isinstance(event, TrialRepeated) for event in events)


@pytest.mark.parametrize("name", FAULTS)
def test_the_durable_trainer_copes(name: str, tmp_path: Path, run_campaign: Callable[..., Any]) -> None:
    """Errors, damage and the loss of power: each that was asked for is met, and nothing is found."""
    campaign = run_campaign(tmp_path, name, "--lives", "warm", seed=2, kills=FAULTS[name])
    assert (campaign.status, campaign.result["verdict"]) == (0, "pass"), campaign.explain()
    assert campaign.result["kills_landed"] == FAULTS[name] * len(campaign.result["verdicts"])

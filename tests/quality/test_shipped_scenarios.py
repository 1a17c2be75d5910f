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
FOUND = {
    "in_place": LOST,
    "half": DIVERGED,
    "minimind": DIVERGED,
    "forget_optimizer": DIVERGED,
    "forget_batch_order": DIVERGED,
    "forget_epoch_skip": DIVERGED,
    "forget_rng": DIVERGED,
    "forget_step": {"silent_divergence", "lost_work"},
}


def test_no_scenario_is_left_out() -> None:
    """All shipped scenarios that expect a failure are run below; the others are those of the durable trainer."""
    assert set(shipped_scenarios()) - set(FOUND) == {"durable", "durable_epoch"}


@pytest.mark.parametrize("name", FOUND)
def test_wrong_way_is_found(name: str, tmp_path: Path, run_campaign: Callable[..., Any]) -> None:
    """The failure is found with few kills, under the right name, and exit status 0 says that it was expected."""
    kills = 4 if name == "in_place" else 1
    campaign = run_campaign(tmp_path, name, "--lives", "warm", seed=1, kills=kills)
    assert (campaign.status, campaign.result["verdict"]) == (0, "fail"), campaign.explain()
    assert campaign.findings & FOUND[name], campaign.explain()
    assert campaign.result["kills_landed"] == kills
    events = read_events(tmp_path / "runs" / "latest")
    assert any(isinstance(event, TrialRepeated) for event in events)

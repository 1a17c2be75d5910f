"""Warm lives where they were asked for, and fresh ones, one at a time, where the target has initialised CUDA."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Self

import pytest

from chaos import campaign
from chaos.journal import CampaignStarted, Journal, ReferenceRecorded
from chaos.lives.starters import warm_plan
from chaos.model import LifeEnd, LifeRecord, LivesMode, Outcome, Reference, TargetProfile, Trial, TrialKind
from chaos.scenario import scenario_from_command
from chaos.settings import LivesKind

TRIAL = Trial(number=6, kind=TrialKind.FAULTED)
REFERENCE = Reference(
    outcomes=(
        Outcome(trial=Trial(number=1, kind=TrialKind.REFERENCE), lives=(LifeRecord(number=1, end=LifeEnd.EXITED),)),
    ),
    profile=TargetProfile(),
    final=(),
    deterministic=True,
)


class NoPool:
    """A pool that runs nothing and remembers how narrow it was made."""

    narrowed: list[int]

    def __init__(self, jobs: int) -> None:
        """Take the place of the pool of workers."""
        self.jobs = jobs

    def narrow(self, jobs: int) -> None:
        """Remember it."""
        self.narrowed.append(jobs)

    def __enter__(self) -> Self:
        """Return the pool itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing to end."""


@pytest.mark.parametrize(
    ("lives", "uses_cuda", "is_warm", "narrowed"),
    [
        (LivesKind.WARM, False, True, []),
        (LivesKind.FRESH, False, False, []),
        (LivesKind.WARM, True, False, [1]),
        (LivesKind.FRESH, True, False, [1]),
    ],
)
def test_lives_after_the_references(
    lives: LivesKind,
    uses_cuda: bool,  # noqa: FBT001 - pytest gives it by name
    is_warm: bool,  # noqa: FBT001 - pytest gives it by name
    narrowed: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the first reference left decides; a fresh repetition is fresh in any case."""
    NoPool.narrowed = []
    monkeypatch.setattr(campaign, "LocalPool", NoPool)
    modules = tmp_path / "trials" / "0001" / "life-01" / "modules.json"
    modules.parent.mkdir(parents=True)
    modules.write_text(json.dumps({"modules": ["json"], "uses_cuda": uses_cuda}))
    scenario = scenario_from_command(
        ("python", "t.py", "{out}"), checkpoints=("{out}/c",), final=("{out}/f",), ignore=(), step=None, saved=None
    )
    started = CampaignStarted(
        run="r", seed=1, kills=1, jobs=4, mode=LivesMode.INTERCEPTED, strict=False, lives=lives, scenario=scenario
    )
    events = (started, ReferenceRecorded(reference=REFERENCE, points=(), uses_cuda=uses_cuda))
    with Journal(tmp_path) as journal:
        one = campaign.Campaign(tmp_path, journal, events, lambda _: None)
        one.learn()
    assert one.spec(TRIAL, REFERENCE).modules == (str(modules) if is_warm else "")
    assert one.spec(TRIAL, REFERENCE, is_fresh=True).modules == ""
    assert NoPool.narrowed == narrowed


def test_a_target_that_leaves_no_list_has_an_empty_template(tmp_path: Path) -> None:
    """One that ends by `os._exit` is not asked what it had imported: its lives are forked from a bare interpreter."""
    plan = warm_plan(tmp_path / "modules.json")
    assert (plan.modules, plan.uses_cuda) == ((), False)

"""The nightly stress job: every shipped scenario, over and over, with fresh seeds, until the budget is spent."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TextIO

from chaos.errors import ChaosError
from chaos.invocation import Asked, conduct
from chaos.reports.night import Campaigned, Night
from chaos.runs import remove_run
from chaos.scenario import load_scenario, shipped_scenarios
from chaos.settings import LivesKind, SettingsLayer
from chaos.verdict import exit_status

# From bad to good: what the whole night's exit status is taken from.
_WORST_FIRST: Final = (3, 1, 2, 4, 0)


def run_night(
    root: Path,
    *,
    seed: int,
    budget_s: float,
    kills: int,
    jobs: int | None,
    lives: LivesKind,
    progress: TextIO,
    tell: Callable[[str], None],
) -> Night:
    """Run campaigns until the budget would not hold another one; at least one is always run."""
    begin = time.monotonic()
    rng = random.Random(f"ninelives night {seed}")
    names = shipped_scenarios()
    campaigns: list[Campaigned] = []
    while True:
        spent = time.monotonic() - begin
        longest = max((campaign.elapsed_s for campaign in campaigns), default=0.0)
        if campaigns and spent + longest > budget_s:
            break
        name = names[len(campaigns) % len(names)]
        layer = SettingsLayer(kills=kills, seed=rng.randrange(2**32), jobs=jobs, lives=lives)
        tell(f"[{spent:5.0f} s] {name}, seed {layer.seed}")
        campaigns.append(_run_one(name, layer, root, progress))
    seen = {campaign.scenario for campaign in campaigns}
    statuses = {campaign.status for campaign in campaigns}
    return Night(
        seed=seed,
        budget_s=budget_s,
        elapsed_s=time.monotonic() - begin,
        status=next(status for status in _WORST_FIRST if status in statuses),
        campaigns=tuple(campaigns),
        not_run=tuple(name for name in names if name not in seen),
    )


def _run_one(name: str, layer: SettingsLayer, root: Path, progress: TextIO) -> Campaigned:
    """Run one campaign; keep its folder only if it did not come out as the scenario expects."""
    begin = time.monotonic()
    seed = layer.seed or 0
    try:
        folder, judged = conduct(Asked(scenario=load_scenario(name), layer=layer, root=root), progress)
    except ChaosError as error:
        return Campaigned(
            scenario=name,
            seed=seed,
            verdict=None,
            status=error.exit_status,
            kills_landed=0,
            findings=(),
            elapsed_s=time.monotonic() - begin,
            error=str(error),
        )
    status = exit_status(judged.judgement)
    if status == 0:
        remove_run(folder)
    return Campaigned(
        scenario=name,
        seed=seed,
        verdict=judged.judgement.verdict,
        status=status,
        kills_landed=judged.judgement.kills_landed,
        findings=tuple(sorted({finding.check for finding in judged.judgement.findings})),
        elapsed_s=time.monotonic() - begin,
        run="" if status == 0 else folder.name,
    )

"""A stage for demonstrations: one shipped scenario with its references recorded, on which single trials are run."""

from __future__ import annotations

from pathlib import Path

from chaos.campaign import FIRST_FAULTED, Campaign
from chaos.executors.pool import LocalPool
from chaos.journal import Journal
from chaos.model import CrashPoint, Outcome, Trial, TrialKind
from chaos.runs import open_run, start_run
from chaos.scenario import load_scenario
from chaos.settings import SettingsLayer, resolve_settings


class Stage:
    """One scenario, its references recorded, ready for trials."""

    def __init__(self, name: str, root: Path) -> None:
        """Run the scenario's references below `root`."""
        self.name = name
        scenario = load_scenario(name)
        settings = resolve_settings(SettingsLayer(kills=1, seed=0), scenario)
        self.folder, self._started = start_run(root, scenario, settings, is_latest=False)
        self._number = FIRST_FAULTED
        with open_run(self.folder) as (journal, _):
            journal.append(self._started)
            self.recorded = self._campaign(journal).learn()

    def _campaign(self, journal: Journal) -> Campaign:
        """Return a campaign over this stage's folder."""
        return Campaign(self.folder, journal, (self._started,), lambda _: None)

    def strike(self, point: CrashPoint, *, image_bytes: int = 0) -> tuple[Outcome, Path]:
        """Strike once at `point`, start again; return what came of it, and the output folder."""
        trial = Trial(number=self._number, kind=TrialKind.FAULTED, crash_points=(point,), image_bytes=image_bytes)
        self._number += 1
        with open_run(self.folder) as (journal, _), LocalPool(1) as pool:
            campaign = self._campaign(journal)
            folder = campaign.trial_folder(trial.number)
            (outcome,) = pool.run([(campaign.spec(trial, self.recorded.reference), folder)])
        return outcome, folder / "out"


def last_line(text: str) -> str:
    """Return the last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")

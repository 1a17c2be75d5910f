"""From a trial and what the references taught to its specification: all that a worker needs to run it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from chaos.journal import CampaignStarted
from chaos.lives.ticks import KnownSteps, write_known_steps
from chaos.model import Reference, TargetProfile, Trial, TrialSpec

_KNOWN_STEPS: Final = "reference-steps.json"
_LEAST_DEADLINE_S: Final = 60.0
_DEADLINE_FACTOR: Final = 10.0
# All lives are compared with the references: more of their steps are digested.
_REFERENCE_BUDGETS: Final = 10.0


def specify_reference(started: CampaignStarted, trial: Trial) -> TrialSpec:
    """Specify a reference, before anything is known of the target."""
    target = started.scenario.target
    return TrialSpec(
        target=target,
        profile=TargetProfile(),
        trial=trial,
        mode=started.mode,
        deadline_s=target.deadline_s,
        probe_budget=min(100.0, _REFERENCE_BUDGETS * started.probe_budget),
    )


def specify(
    started: CampaignStarted, trial: Trial, reference: Reference, *, folder: Path, first: Path, modules: str
) -> TrialSpec:
    """Specify a trial, with what the references taught.

    `folder` is the run's, `first` that of the first reference's trial. `modules` says what a warm template imports
    (empty: lives are fresh).
    """
    target = started.scenario.target
    longest_s = max(life.elapsed_s for outcome in reference.outcomes for life in outcome.lives)
    out = first.absolute() / "out"
    return TrialSpec(
        target=target,
        profile=reference.profile,
        trial=trial,
        mode=started.mode,
        deadline_s=min(target.deadline_s, max(_LEAST_DEADLINE_S, _DEADLINE_FACTOR * longest_s)),
        varying_leaves=reference.varying_leaves,
        reference_final={state.key: str(out / state.path) for state in reference.final},
        modules=modules,
        without_fsync=started.without_fsync,
        probe_budget=started.probe_budget,
        known_steps=_known_steps(folder, reference),
    )


def _known_steps(folder: Path, reference: Reference) -> str:
    """Return where the workers find the probe's records of the reference (empty: there are none)."""
    path = folder.absolute() / _KNOWN_STEPS
    if reference.steps and not path.exists():
        write_known_steps(path, KnownSteps(records=reference.steps, unsteady=reference.unsteady))
    return str(path) if reference.steps else ""

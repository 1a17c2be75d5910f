"""Where no probe sees the state, the part of the checkpoint that a resume does not use is found from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos.fingerprints import in_words
from chaos.journal import TrialFinished, TrialsPlanned, read_events
from chaos.model import Fingerprint, TrialKind

GLOBS = ("--checkpoints", "{out}/ckpt.npz", "--final", "{out}/final.npz")
KILLS = 4


def diagnosed(campaign: Any) -> dict[str, Any]:
    """Return the one fingerprint among the findings, and its sentences."""
    (finding,) = [finding for finding in campaign.result["findings"] if finding["fingerprint"] is not None]
    assert finding["check"] == "silent_divergence"
    found: dict[str, Any] = finding["fingerprint"]
    return found | {"words": in_words(msgspec.convert(found, Fingerprint))}


@pytest.mark.parametrize(
    ("arguments", "unused", "sentence"),
    [
        (("momentum",), ["momentum"], "Resetting `momentum` in the checkpoint changes nothing"),
        (("momentum", "--compressed"), ["momentum"], "Resetting `momentum` in the checkpoint changes nothing"),
        (("step",), ["step"], "Resetting `step` in the checkpoint changes nothing"),
        (("generator",), ["keys", "position"], "Resetting `keys` or `position` in the checkpoint changes nothing"),
        (("hidden",), [], "Every part of the checkpoint is used"),
    ],
)
def test_the_part_that_is_not_used_is_named(
    arguments: tuple[str, ...],
    unused: list[str],
    sentence: str,
    tmp_path: Path,
    run_campaign: Callable[..., Any],
    command_of: Callable[..., list[str]],
) -> None:
    """Each part that the resume ignores, and none where what is lost was never saved."""
    command = command_of("numpy_parts", "--forget", *arguments)
    campaign = run_campaign(tmp_path, *GLOBS, "--", *command, seed=1, kills=KILLS)
    assert campaign.result["verdict"] == "fail", campaign.explain()
    found = diagnosed(campaign)
    assert (found["unused"], found["unknown"], found["untried"]) == (unused, {}, 0)
    assert sentence in found["words"]


def test_an_intact_script_is_not_examined(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """Nothing diverged, so nothing is run again."""
    campaign = run_campaign(tmp_path, *GLOBS, "--", *command_of("numpy_parts"), seed=1, kills=KILLS)
    assert campaign.result["verdict"] == "pass", campaign.explain()
    assert not fingerprints(tmp_path)


def test_a_script_with_text_checkpoints_is_examined(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """The numbers of a generator in JSON are reset as well as an array's bytes are."""
    globs = ("--checkpoints", "{out}/ckpt.json", "--final", "{out}/final.json")
    campaign = run_campaign(tmp_path, *globs, "--", *command_of("forgets_generator"), seed=1, kills=KILLS)
    assert diagnosed(campaign)["unused"] == ["generator"]


def test_it_can_be_left_out(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """With --no-fingerprints the finding stands as it is, and no trial is planned for it."""
    command = command_of("numpy_parts", "--forget", "momentum")
    campaign = run_campaign(tmp_path, *GLOBS, "--no-fingerprints", "--", *command, seed=1, kills=KILLS)
    assert campaign.findings == {"silent_divergence"}
    assert all(finding["fingerprint"] is None for finding in campaign.result["findings"])
    assert not fingerprints(tmp_path)


def fingerprints(folder: Path) -> list[int]:
    """Return the numbers of the trials that examine a lineage, planned or finished."""
    events = read_events(folder / "runs" / "latest")
    planned = [trial for event in events if isinstance(event, TrialsPlanned) for trial in event.trials]
    finished = [event.outcome.trial for event in events if isinstance(event, TrialFinished)]
    return [trial.number for trial in (*planned, *finished) if trial.kind is TrialKind.FINGERPRINT]

"""The lesson's experiment for real, in small: every row of `chaos ablate`, its figures, its plot, its interruption."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 280
STEPS, SEAM = 10, 5
FIRST_OTHER = {
    "intact": None, "weights_alone": 6, "optimizer": 6, "batch_order": 6, "rng": 6, "step": 6, "half": 6,
    "epoch_intact": None, "epoch_batch_order": 6, "epoch_skip": 7,
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the experiment is run in."""
    return tmp_path_factory.mktemp("ablation")


@pytest.fixture(scope="module")
def told(chaos_command: Path, place: Path) -> dict[str, Any]:
    """Return what an experiment of ten steps tells as JSON; it came out as told."""
    words = [chaos_command, "ablate", "--steps", str(STEPS), "--seam", str(SEAM), "--runs", place / "runs", "--json"]
    ended = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.fixture(scope="module")
def rows(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return its rows by name."""
    return {row["name"]: row for row in told["rows"]}


def test_killed_and_resumed_is_the_run_at_once_bit_for_bit(rows: dict[str, dict[str, Any]]) -> None:
    """The intact rows of both orders have every weight's bits, at the end and after every step."""
    for name in ("intact", "epoch_intact"):
        difference = rows[name]["difference"]
        assert (difference["elements_differing"], difference["largest_ulp"]) == (0, 0)
        assert difference["elements"] > 300_000
        assert [one["elements_differing"] for one in rows[name]["steps"]] == [0] * (STEPS - SEAM + 1)
        assert rows[name]["mean_gap"] == rows[name]["loss_jump"] == 0


def test_every_omission_ends_elsewhere_from_its_own_step_on(rows: dict[str, dict[str, Any]]) -> None:
    """Each row differs first where it must: right after the seam, or where the next epoch begins."""
    assert {name: row["first_different_step"] for name, row in rows.items()} == FIRST_OTHER
    for name, first in FIRST_OTHER.items():
        assert (rows[name]["difference"]["elements_differing"] > 0) is (first is not None)
        assert (rows[name]["distance"] > 0) is (first is not None)


def test_the_loss_at_the_seam_tells_nothing_of_the_optimizer(rows: dict[str, dict[str, Any]]) -> None:
    """The first loss after the seam is the reference's without optimizer state; the first update is not."""
    lost = rows["optimizer"]
    assert lost["loss_jump"] == 0
    assert lost["update_ratio"] != pytest.approx(1.0, abs=0.05)
    assert lost["mean_gap"] > 0


def test_a_run_whose_steps_began_anew_is_compared_by_its_updates(rows: dict[str, dict[str, Any]]) -> None:
    """It does ten steps after its five, and is measured up to the tenth."""
    assert rows["step"]["updates"] == SEAM + STEPS
    assert [one["step"] for one in rows["step"]["steps"]] == list(range(SEAM, STEPS + 1))


def test_half_precision_has_moved_the_weights_before_any_step(rows: dict[str, dict[str, Any]]) -> None:
    """The state that is resumed from is already at a small distance; nowhere else it is."""
    begun = {name: row["steps"][0]["weight_distance"] for name, row in rows.items()}
    assert 0 < begun.pop("half") < 0.1
    assert set(begun.values()) == {0}


def test_sizes_are_as_told(told: dict[str, Any]) -> None:
    """The optimizer has two thirds of the resume file, half precision half the size, logits move by under 0.003."""
    sizes = told["sizes"]
    assert sizes["optimizer_bytes"] >= 2 * sizes["weights_bytes"]
    assert 0.6 < told["optimizer_share"] < 0.7
    assert 0.45 < told["half_share"] < 0.55
    assert 0 < sizes["mean_logit_difference"] < sizes["largest_logit_difference"] < 0.003
    assert sizes["logits"] == 16 * 32 * 256


def test_what_is_kept_is_small_and_complete(told: dict[str, Any], place: Path) -> None:
    """The result is in the run's folder, the plot too; weights of single steps are gone."""
    folder = place / told["run_dir"]
    assert json.loads((folder / "ablation.json").read_bytes()) == told
    assert not list(folder.rglob("*.npy"))
    assert len(list(folder.rglob("resume.pt"))) == 2
    if importlib.util.find_spec("matplotlib") is not None:
        assert (place / told["plot"]).read_bytes().startswith(b"<?xml")


def test_the_probe_names_what_was_left_out(rows: dict[str, dict[str, Any]]) -> None:
    """Each row's diagnosis names the component that was left out, at the step where that shows; intact ones have none.

    With the weights alone the data is not named besides: that the generators began anew explains it too.
    """
    components = {
        "optimizer": {"optimizer state"}, "batch_order": {"data"}, "rng": {"torch generator"}, "half": {"weights"},
        "weights_alone": {"optimizer state", "torch generator"}, "step": {"learning rate schedule"},
        "epoch_batch_order": {"data"}, "epoch_skip": {"data"},
    }  # fmt: skip
    for name, row in rows.items():
        named = {lost["component"] for lost in row["diagnosis"]["lost"]} if row["diagnosis"] else set()
        assert components.get(name, set()) <= named, name
        assert bool(named) is not row["is_intact"], name
        if named:
            assert row["diagnosis"]["first_difference"] == FIRST_OTHER[name], name


def test_an_interrupted_experiment_leaves_no_process(
    chaos_command: Path,
    tmp_path: Path,
    eventually: Callable[..., bool],
    processes_with: Callable[[str], list[Any]],
) -> None:
    """SIGTERM while lives run ends them all, leaves none of their files, and says so."""
    marker = f"--out {tmp_path}"
    words = [chaos_command, "ablate", "--runs", tmp_path / "runs"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert eventually(lambda: processes_with(marker), within_s=60.0)
        os.kill(process.pid, signal.SIGTERM)
        _, said = process.communicate(timeout=60.0)
    assert process.returncode == 130, said.decode()
    assert said.decode().splitlines()[-2:] == [
        "Error: interrupted", "  nothing of it is left, and it cannot be continued: start it anew"
    ]  # fmt: skip
    assert list((tmp_path / "runs").iterdir()) == []
    assert eventually(lambda: not processes_with(str(tmp_path)), within_s=10.0)

"""`chaos explore` under faults other than kills: every state of a loss of power, every operation that can fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXPLORED = Path(__file__).with_name("targets") / "explored.py"
GLOBS = ("--checkpoints", "{out}/ckpt*.json", "--final", "{out}/final.json")
ALL = ["posix", "ext4", "xfs", "btrfs"]
Explore = Callable[..., dict[str, Any]]


@pytest.fixture
def explore(chaos_command: Path, tmp_path: Path) -> Explore:
    """Give a function that explores one way of the target under some faults and returns the JSON object."""

    def run(way: str, faults: str, *options: str) -> dict[str, Any]:
        runs = tmp_path / f"runs-{len(list(tmp_path.iterdir()))}"
        command = [chaos_command, "explore", "--json", "--seed", "4", "--faults", faults, "--runs", str(runs)]
        command += [*options, *GLOBS, "--", sys.executable, "-S", "-E", str(EXPLORED), "{out}", way]
        done = subprocess.run(command, capture_output=True, check=False, timeout=240)
        assert done.stdout, done.stderr.decode()
        result: dict[str, Any] = json.loads(done.stdout)
        return result | {"status": done.returncode, "runs": runs}

    return run


def counts(result: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return what was judged of each kind of fault."""
    return {count["fault"]: count for count in result["by_fault"]}


def test_a_rename_survives_kills_and_not_the_loss_of_power(explore: Explore) -> None:
    """Two verdicts; what is missing is named, with the operation that published without it, on every file system."""
    result = explore("durable", "kill,power_loss", "--depth", "1")
    assert (result["status"], result["verdicts"]) == (1, {"kill": "pass", "power_loss": "fail"})
    assert {finding["fault"] for finding in result["findings"]} == {"power_loss"}
    first = result["losses"][0]
    assert (first["missing"], first["published_by"]) == ("fsync of ckpt.json.tmp", "rename #1 of ckpt.json")
    assert first["profiles"] == ALL
    assert counts(result)["kill"]["failing"] == 0
    assert any("fsync of ckpt.json.tmp is missing" in finding["detail"] for finding in result["findings"])


def test_a_durable_save_survives_both(explore: Explore) -> None:
    """Two lives deep: what a recovery writes may be lost as well."""
    result = explore("synced", "kill,power_loss", "--saves", "2")
    assert (result["status"], result["verdicts"]) == (0, {"kill": "pass", "power_loss": "pass"})
    assert result["losses"] == []
    assert counts(result)["power_loss"]["judged"] == counts(result)["power_loss"]["states"] > 0


def test_a_folder_that_is_not_synced(explore: Explore) -> None:
    """The bytes are there, the name is not: the save that was announced is lost, and nothing else."""
    result = explore("folder_not_synced", "power_loss", "--depth", "1")
    assert result["verdicts"] == {"power_loss": "fail"}
    assert {group["missing"] for group in result["losses"]} == {"fsync of the folder of ckpt.json"}


def test_without_fsync_the_loss_is_found(explore: Explore) -> None:
    """The negative control: fsync is answered and not carried out, and the durable save is durable no more."""
    result = explore("synced", "power_loss", "--depth", "1", "--saves", "2", "--without-fsync")
    assert (result["status"], result["verdicts"]) == (1, {"power_loss": "fail"})
    assert any("without being carried out" in sentence for sentence in result["not_guaranteed"])


@pytest.mark.parametrize("way", ["in_place", "synced"])
def test_errors_at_every_operation(explore: Explore, way: str) -> None:
    """Of a save, once and from there on: in place the checkpoint is lost, under another name it is not."""
    result = explore(way, "disk_full,io_error", "--saves", "2")
    expected = "fail" if way == "in_place" else "pass"
    assert result["verdicts"] == {"disk_full": expected, "io_error": expected}
    kinds = counts(result)
    # In place: the opening and three writes. Else: the rename and its syncs as well, of the folder too.
    assert (kinds["disk_full"]["states"], kinds["io_error"]["states"]) == ((8, 8) if way == "in_place" else (14, 14))
    assert all(count["judged"] == count["states"] for count in kinds.values())


def test_what_was_not_tried_is_not_passed(explore: Explore) -> None:
    """Of one save its checkpoint is damaged in eight ways; its three writes can be short, what it prints cannot."""
    damaged = explore("synced", "bit_flip", "--saves", "2")
    assert counts(damaged)["bit_flip"]["judged"] == 8
    short = explore("synced", "short_write", "--saves", "3", "--depth", "1")
    assert counts(short)["short_write"]["states"] == 3
    never = explore("in_place", "power_loss,bit_flip", "--saves", "1", "--depth", "1", "--budget", "1s")
    assert never["verdicts"]["bit_flip"] == "inconclusive"


def test_a_state_is_shown_again(explore: Explore, chaos_command: Path) -> None:
    """The command that a finding ends with builds the same state, and finds the same."""
    result = explore("durable", "power_loss", "--depth", "1", "--saves", "2")
    finding = result["findings"][0]
    command = [chaos_command, *finding["replay"].split()[1:], "--json"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    again = json.loads(done.stdout)
    assert again["is_same"], done.stderr.decode()
    assert finding["check"] in {found["check"] for found in again["findings"]}

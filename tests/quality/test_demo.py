"""`chaos demo` tells the truth: the in-place save loses everything to the kill, the durable one nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


def test_both_halves_come_out_as_told(chaos_command: Path, tmp_path: Path) -> None:
    """The figures that are shown are those of the files, and the exit status says that it went as told."""
    ended = subprocess.run(
        [chaos_command, "demo", "--json", "--runs", tmp_path], capture_output=True, check=False, timeout=250
    )
    assert ended.returncode == 0, ended.stderr.decode()
    told: dict[str, Any] = json.loads(ended.stdout)
    torn, durable = told["in_place"], told["durable"]
    assert told["came_out_as_told"]
    assert [state["is_whole"] for state in torn["after"]] == [False]
    assert torn["after"][0]["size_bytes"] < torn["before"][0]["size_bytes"]
    assert "failed" in torn["torch_says"]
    assert torn["restart_status"] == 1
    assert all(state["is_whole"] for state in durable["after"])
    assert durable["restart_status"] == 0
    assert durable["is_same_bits"]
    assert durable["restart_first_step"] == durable["acknowledged_step"] + 1
    assert not (tmp_path / "latest").exists()

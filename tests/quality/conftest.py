"""Campaigns over small scripts: the installed command is run on each, and its JSON object is looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TARGETS = Path(__file__).parent / "targets"
DEADLINE_S = 240


class Campaign:
    """What one campaign came to: exit status, the JSON object, what it said on standard error."""

    def __init__(self, ended: subprocess.CompletedProcess[str]) -> None:
        """Read the one object on standard output."""
        self.status = ended.returncode
        self.said = ended.stderr
        self.result: dict[str, Any] = json.loads(ended.stdout)

    @property
    def findings(self) -> set[str]:
        """Return the names of all findings, warnings too."""
        return {finding["check"] for finding in self.result["findings"]}

    def explain(self) -> str:
        """Return what a failed assertion should show."""
        details = [f"{finding['check']}: {finding['detail']}" for finding in self.result["findings"]]
        return "\n".join([self.result["verdict"], *details, *self.result["inconclusive"], self.said])


RunCampaign = Callable[..., Campaign]


@pytest.fixture(scope="session")
def run_campaign(chaos_command: Path) -> RunCampaign:
    """Return a function that runs a campaign with the given options in a folder and returns what it came to."""

    def run(folder: Path, *options: str, seed: int, kills: int) -> Campaign:
        words = ["run", "--json", "--runs", str(folder / "runs"), "--seed", str(seed), "--kills", str(kills), *options]
        return Campaign(
            subprocess.run(
                [str(chaos_command), *words],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
        )

    return run


@pytest.fixture(scope="session")
def command_of() -> Callable[..., list[str]]:
    """Return a function that makes the words after `--` for a script in `targets` and its arguments."""

    def command(script: str, *arguments: str) -> list[str]:
        return [sys.executable, str(TARGETS / f"{script}.py"), "{out}", *arguments]

    return command

"""Small savers under every kind of fault: what copes passes, what does not is found under its own name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chaos.model import FaultKind

ERRORS = "disk_full,io_error"


class Case(NamedTuple):
    """One script under some faults, and what must come of it: `found` all of it, `allowed` any of it, nothing else."""

    script: str
    faults: str
    arguments: tuple[str, ...] = ()
    checkpoints: str = "{out}/ckpt*.json"
    kills: int = 6
    found: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


CASES = (
    Case("durable", ",".join(kind for kind in FaultKind if kind is not FaultKind.BIT_FLIP), kills=5),
    Case("durable", "bit_flip", found=("corruption_accepted",)),
    Case(
        "atomic",
        "power_loss",
        kills=12,
        found=("no_valid_checkpoint",),
        allowed=("acknowledged_lost", "lost_work"),
    ),
    Case("in_place", "disk_full", found=("no_valid_checkpoint", "resume_crashed")),
    Case("in_place", "torn_write", found=("no_valid_checkpoint", "resume_crashed")),
    Case("swallows_errors", ERRORS, ("once",), kills=8, found=("failed_save_ignored",)),
    Case("swallows_errors", "short_write", ("once",)),
    Case("counts", "short_write", ("ignores",), found=("failed_save_ignored",), allowed=("no_valid_checkpoint",)),
    Case("counts", "short_write", ("looks",)),
    Case("rots", "bit_flip", ("bare",), "{out}/*.safetensors", found=("corruption_accepted",)),
    Case("rots", "bit_flip", ("sum",), "{out}/*.safetensors"),
    Case("rots", "bit_flip", ("bare", "json"), "{out}/ckpt*.json", found=("corruption_accepted",)),
    Case("rots", "bit_flip", ("sum", "json"), "{out}/ckpt*.json"),
    Case("rots", "bit_flip", ("bare", "pickle"), "{out}/*.pickle", found=("corruption_accepted",)),
    Case("rots", "bit_flip", ("sum", "pickle"), "{out}/*.pickle"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join([case.script, *case.arguments, case.faults]))
def test_a_saver_under_faults(
    case: Case, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]], tmp_path: Path
) -> None:
    """Every fault that was asked for lands, and exactly what is wrong with the script is found."""
    options = ["--checkpoints", case.checkpoints, "--final", "{out}/final.json", "--faults", case.faults]
    campaign = run_campaign(
        tmp_path, *options, "--", *command_of(case.script, *case.arguments), seed=1, kills=case.kills
    )
    kinds = case.faults.split(",")
    assert campaign.result["kills_landed"] >= case.kills * len(kinds), campaign.explain()
    assert campaign.result["verdict"] == ("fail" if case.found else "pass"), campaign.explain()
    assert set(case.found) <= campaign.findings, campaign.explain()
    assert campaign.findings <= {*case.found, *case.allowed}, campaign.explain()


def test_a_target_that_tries_again_in_vain_is_found(
    run_campaign: Callable[..., Any], command_of: Callable[..., list[str]], tmp_path: Path
) -> None:
    """Where a full disk stays full, whoever tries again and again ends without the save, and says that all is well."""
    options = ["--checkpoints", "{out}/ckpt*.json", "--final", "{out}/final.json", "--faults", "disk_full"]
    campaign = run_campaign(tmp_path, *options, "--", *command_of("swallows_errors", "often"), seed=1, kills=6)
    assert campaign.findings == {"failed_save_ignored"}, campaign.explain()


def test_errors_cannot_be_answered_without_interception(
    run_campaign: Callable[..., Any], command_of: Callable[..., list[str]], tmp_path: Path
) -> None:
    """Polled lives can only be killed: anything else is refused, with a way out."""
    options = ["--checkpoints", "{out}/ckpt.json", "--final", "{out}/final.json", "--no-intercept"]
    command = command_of("atomic")
    campaign = run_campaign(tmp_path, *options, "--faults", "kill,io_error", "--", *command, seed=1, kills=1)
    assert campaign.status == 2
    assert "io_error would have to answer its calls" in campaign.said

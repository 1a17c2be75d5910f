"""A campaign whose supervisor is killed leaves nobody behind, and goes on to the same verdict with `--continue`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from chaos.journal import TrialFinished, read_events
from chaos.lives import guardian
from chaos.model import TrialKind

KILLS = 24
COUNT = Path(__file__).with_name("targets") / "count.py"
PATIENCE_S = 20.0
WORKER = "chaos.executors.worker"
GUARDIAN = str(Path(guardian.__file__))


def marked(runs: Path) -> dict[str, str]:
    """Return an environment by which every process of a campaign is found again."""
    return {**os.environ, "CAMPAIGN_UNDER_TEST": str(runs)}


def arguments(runs: Path, *more: str) -> list[str]:
    """Return the arguments of a campaign on the counting target."""
    globs = ["--checkpoints", "{out}/ckpt.json", "--final", "{out}/final.json"]
    command = ["--", sys.executable, "-S", "-E", str(COUNT), "{out}"]
    return [
        "run",
        "--kills",
        str(KILLS),
        "--seed",
        "5",
        "--runs",
        str(runs),
        "--jobs",
        "2",
        "--json",
        *globs,
        *more,
        *command,
    ]


def outcomes(runs: Path) -> list[TrialFinished]:
    """Return the finished trials of the newest run, as far as its journal goes."""
    try:
        return [event for event in read_events(runs / "latest") if isinstance(event, TrialFinished)]
    except Exception:  # noqa: BLE001 - the journal may not be there yet
        return []


def states(runs: Path) -> dict[int, list[str]]:
    """Return the crash states of each faulted trial."""
    found = {}
    for event in outcomes(runs):
        outcome = event.outcome
        if outcome.trial.kind is TrialKind.FAULTED:
            assert outcome.trial.number not in found
            found[outcome.trial.number] = [life.state_digest for life in outcome.lives]
    return found


@pytest.fixture(scope="module")
def whole(chaos_command: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[int, list[str]]]:
    """Give the result and the crash states of the campaign that nobody disturbs."""
    runs = tmp_path_factory.mktemp("whole") / "runs"
    done = subprocess.run([chaos_command, *arguments(runs)], capture_output=True, check=True, timeout=120)
    return json.loads(done.stdout), states(runs)


@pytest.mark.parametrize("victim", ["campaign", "worker"])
@pytest.mark.parametrize("after", [1, 4])
def test_a_killed_supervisor_leaves_nobody_and_the_campaign_goes_on(
    chaos_command: Path,
    tmp_path: Path,
    whole: tuple[dict[str, Any], dict[int, list[str]]],
    eventually: Callable[..., bool],
    processes_with: Callable[..., Any],
    victim: str,
    after: int,
) -> None:
    """SIGKILL to the campaign or to a worker: nothing runs on, and going on ends as an undisturbed run does."""
    runs = tmp_path / "runs"
    campaign = subprocess.Popen(
        [chaos_command, *arguments(runs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=marked(runs)
    )
    try:
        assert eventually(lambda: len(outcomes(runs)) >= after, within_s=PATIENCE_S)
        if victim == "campaign":
            campaign.kill()
        else:
            assert eventually(lambda: kill_a_worker(processes_with(str(runs))), within_s=PATIENCE_S)
        stdout, stderr = campaign.communicate(timeout=PATIENCE_S)
    finally:
        campaign.kill()
        campaign.wait()
    assert campaign.returncode == (-signal.SIGKILL if victim == "campaign" else 3), (stdout, stderr)
    assert eventually(lambda: processes_with(str(runs)) == [], within_s=PATIENCE_S), processes_with(str(runs))

    goes_on = [chaos_command, "run", "--continue", "--runs", str(runs), "--json"]
    done = subprocess.run(goes_on, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    result = json.loads(done.stdout)
    for name in ("verdict", "kills_landed", "kills_by_phase", "seed", "checks", "findings"):
        assert result[name] == whole[0][name], name
    assert result["kills_landed"] == KILLS
    assert states(runs) == whole[1]


@pytest.mark.parametrize("victim", ["campaign", "worker", "both", "worker and guardian"])
def test_a_target_that_hangs_does_not_survive_its_supervisor(
    chaos_command: Path,
    tmp_path: Path,
    eventually: Callable[..., bool],
    processes_with: Callable[..., Any],
    victim: str,
) -> None:
    """A double-forked process in a session of its own that only computes ends with the supervisor."""
    runs = tmp_path / "runs"
    escape = [sys.executable, "-S", "-E", str(COUNT.with_name("escape.py")), "{out}", "daemon"]
    globs = ["--checkpoints", "{out}/ready", "--final", "{out}/f"]
    command = [chaos_command, "run", "--runs", str(runs), "--jobs", "2", *globs, "--", *escape]
    campaign = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=marked(runs))
    try:
        assert eventually(lambda: len(list(runs.glob("latest/trials/*/out/ready"))) == 2, within_s=PATIENCE_S)
        assert len([p for p in processes_with(str(runs)) if "daemon" in p.cmdline()[-1:]]) >= 4
        wanted = {
            "campaign": {"run"},
            "worker": {WORKER},
            "both": {"run", WORKER},
            "worker and guardian": {WORKER, GUARDIAN},
        }[victim]
        victims = [p for p in processes_with(str(runs)) if set(p.cmdline()) & wanted]
        assert victims
        for process in victims:
            with suppress(psutil.NoSuchProcess):  # a worker may have followed its campaign by now
                process.kill()
        campaign.wait(PATIENCE_S)
    finally:
        campaign.kill()
        campaign.wait()
    assert eventually(lambda: processes_with(str(runs)) == [], within_s=PATIENCE_S), processes_with(str(runs))


def test_calls_stay_blocked_when_the_supervisor_is_gone(
    chaos_command: Path, tmp_path: Path, eventually: Callable[..., bool], processes_with: Callable[..., Any]
) -> None:
    """Between the supervisor's death and the guardian's kill a target waits in its call, instead of seeing it fail."""
    runs = tmp_path / "runs"
    script = [sys.executable, "-S", "-E", str(COUNT.with_name("writer.py")), "{out}"]
    globs = ["--checkpoints", "{out}/state", "--final", "{out}/f"]
    command = [chaos_command, "run", "--runs", str(runs), "--jobs", "1", *globs, "--", *script]
    campaign = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=marked(runs))
    failed = Path("latest/trials/0001/out/failed")
    try:
        assert eventually((runs / failed).exists, within_s=PATIENCE_S)
        supervisors = [p for p in processes_with(str(runs)) if {"run", WORKER} & set(p.cmdline())]
        (keeper,) = [child for p in supervisors for child in p.children() if GUARDIAN in child.cmdline()]
        (target,) = keeper.children()
        keeper.suspend()
        try:
            for process in supervisors:
                process.kill()
            campaign.wait(PATIENCE_S)
            left = {process.pid for process in supervisors}
            assert eventually(lambda: not left & {p.pid for p in processes_with(str(runs))}, within_s=PATIENCE_S)
            assert eventually(lambda: target.status() == psutil.STATUS_SLEEPING, within_s=PATIENCE_S)
            assert (runs / failed).read_bytes() == b"\0"
        finally:
            keeper.resume()
    finally:
        campaign.kill()
        campaign.wait()
    assert eventually(lambda: processes_with(str(runs)) == [], within_s=PATIENCE_S), processes_with(str(runs))


def kill_a_worker(processes: list[Any]) -> bool:
    """Send SIGKILL to one process that runs trials; False where there is none just now."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if WORKER in process.cmdline():
                process.kill()
                return True
    return False

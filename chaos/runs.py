"""The folders of runs: `.chaos/<id>/`, one a campaign, `latest` pointing at the newest; how one is found again."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import importlib.metadata
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from chaos.complaints import did_you_mean
from chaos.errors import HarnessError, UsageError
from chaos.journal import FILE_NAME, CampaignStarted, Event, ExplorationPlan, Journal, read_events
from chaos.model import LivesMode, Record
from chaos.scenario import Scenario, dump_scenario
from chaos.settings import Settings

DEFAULT_ROOT: Final = Path(".chaos")
_LATEST: Final = "latest"
_VERSIONED: Final = ("ninelives", "torch", "numpy", "psutil", "msgspec", "xxhash")


class Environment(Record, kw_only=True):
    """What a run ran on, for whoever reads it later."""

    python: str
    machine: str
    kernel: str
    cores: int
    packages: dict[str, str]


def start_run(
    root: Path,
    scenario: Scenario,
    settings: Settings,
    *,
    is_latest: bool = True,
    exploration: ExplorationPlan | None = None,
) -> tuple[Path, CampaignStarted]:
    """Make a run's folder below `root` with everything that is known before the first trial.

    `is_latest` makes `latest` point at it: not for runs that a user did not ask for as such.
    """
    stamp = dt.datetime.now(tz=dt.UTC).strftime("%Y%m%d-%H%M%S")
    name = f"{stamp}-{secrets.token_hex(2)}"
    folder = root / name
    try:
        (folder / "trials").mkdir(parents=True)
        (folder / "scenario.resolved.toml").write_text(dump_scenario(scenario), encoding="utf-8")
        (folder / "environment.json").write_bytes(msgspec.json.format(msgspec.json.encode(this_environment())))
        if is_latest:
            _point_latest_at(root, name)
    except OSError as error:
        message = f"the run folder {folder} cannot be made: {error.strerror}"
        raise HarnessError(message, hint="choose another place with --runs DIR, or free some space") from error
    started = CampaignStarted(
        run=name,
        seed=settings.seed,
        kills=settings.kills if exploration is None else 0,
        jobs=settings.jobs,
        mode=LivesMode.POLLED if settings.no_intercept else LivesMode.INTERCEPTED,
        strict=settings.strict,
        lives=settings.lives,
        without_fsync=settings.without_fsync,
        stops_early=settings.stop_early,
        has_fingerprints=settings.fingerprints,
        probe_budget=settings.probe_budget,
        exploration=exploration,
        scenario=scenario,
    )
    return folder, started


def name_to_type(folder: Path) -> str:
    """Return what a user types for the run in `folder`: its id where runs are kept by default, else its path."""
    return folder.name if folder.parent == DEFAULT_ROOT else str(folder)


def remove_run(folder: Path) -> None:
    """Remove a run's folder, and `latest` beside it if that pointed at it."""
    shutil.rmtree(folder)
    link = folder.parent / _LATEST
    if link.is_symlink() and not link.exists():
        link.unlink()


def _point_latest_at(root: Path, name: str) -> None:
    """Make `latest` a link to the newest run, in one step."""
    link = root / f".{_LATEST}-{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        link.unlink()
    link.symlink_to(name)
    link.replace(root / _LATEST)


def this_environment() -> Environment:
    """Return what this process runs on."""
    packages = {}
    for name in _VERSIONED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            packages[name] = importlib.metadata.version(name)
    return Environment(
        python=sys.version.split()[0],
        machine=platform.machine(),
        kernel=platform.release(),
        cores=os.cpu_count() or 1,
        packages=packages,
    )


def find_run(root: Path, name: str) -> Path:
    """Return a run's folder by its id (or `latest`) below `root`, or by its path; UsageError where there is none."""
    for folder in (root / name, Path(name)):
        if (folder / FILE_NAME).is_file():
            return folder.parent / folder.resolve().name if folder.is_symlink() else folder
    known = sorted(path.name for path in root.glob("*") if (path / FILE_NAME).is_file() and not path.is_symlink())
    message = f"there is no run `{name}` in {root}"
    hint = did_you_mean(name, known) or (f"The newest is {known[-1]}." if known else "Make one with `chaos run`.")
    raise UsageError(message, hint=hint)


def started_of(events: tuple[Event, ...], folder: Path) -> CampaignStarted:
    """Return what a run was asked; UsageError where its journal does not say."""
    for event in events:
        if isinstance(event, CampaignStarted):
            return event
    message = f"the journal in {folder} holds no campaign"
    raise UsageError(message, hint="start a new one with `chaos run`")


@contextlib.contextmanager
def open_run(folder: Path) -> Iterator[tuple[Journal, tuple[Event, ...]]]:
    """Open a run for going on with it, alone: HarnessError where another process is at it."""
    try:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        message = f"the run folder {folder} cannot be written: {error.strerror}"
        raise HarnessError(message, hint="choose another place with --runs DIR, or free some space") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            message = f"another process is at work in {folder}"
            raise HarnessError(message, hint="wait for it, or start a new run") from error
        with Journal(folder) as journal:
            events = read_events(folder)
            yield journal, events
    finally:
        os.close(lock)

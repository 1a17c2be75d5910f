"""What every test can rely on: the installed `chaos` command, and a suite that leaves nothing behind."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

REPOSITORY = Path(__file__).parents[1]
MARKER = "NINELIVES_SUITE"
GRACE_S = 10.0
CACHES = frozenset({
    ".git", ".venv", ".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache",
    "__pycache__",
})  # fmt: skip
# A person may be writing these beside the run; no test would leave one anywhere but in a folder of its own.
WRITTEN_BY_HAND = frozenset({".cfg", ".md", ".py", ".toml", ".txt", ".yml"})


def _files_left(repository: Path) -> set[Path]:
    """Return the files of the repository folder that neither a cache nor a person would have made."""
    found = set()
    for folder, subfolders, names in os.walk(repository):
        subfolders[:] = [name for name in subfolders if name not in CACHES]
        is_run = ".chaos" in Path(folder).relative_to(repository).parts
        found |= {Path(folder, name) for name in names if is_run or Path(name).suffix not in WRITTEN_BY_HAND}
    return found


def _processes_left(token: str) -> list[psutil.Process]:
    """Return the processes that this suite started, also those that another process has adopted."""
    left = {process.pid: process for process in psutil.Process().children(recursive=True)}
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARKER) == token:
                left[process.pid] = process
        except (psutil.Error, OSError):
            continue  # ended meanwhile, or somebody else's
    return list(left.values())


def _described(process: psutil.Process) -> str:
    """Return a process's id and command line, or what is left of them."""
    try:
        return f"{process.pid}: {' '.join(process.cmdline()) or process.name()}"
    except psutil.Error as error:
        return f"{process.pid}: {error}"


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Fail the run if, at its end, a process that it started still runs or a file lies in the repository."""
    before = _files_left(REPOSITORY)
    token = uuid.uuid4().hex
    os.environ[MARKER] = token
    yield
    del os.environ[MARKER]
    _, alive = psutil.wait_procs(_processes_left(token), timeout=GRACE_S)
    processes = [_described(process) for process in alive]
    files = sorted(str(path) for path in _files_left(REPOSITORY) - before)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    assert (processes, files) == ([], []), f"the suite left processes {processes} and files {files}"


@pytest.fixture(scope="session")
def chaos_command() -> Path:
    """Return the path of the `chaos` command that is installed beside this interpreter."""
    command = Path(sys.executable).parent / "chaos"
    assert command.is_file(), f"{command} is missing: install the package first, as the README says"
    return command


def _eventually(condition: Callable[[], bool], *, within_s: float = 10.0) -> bool:
    """Look again and again until the condition holds; False where it does not within the time."""
    limit = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > limit:
            return False
        os.sched_yield()
    return True


def _processes_with(marker: str) -> list[psutil.Process]:
    """Return the running processes that have `marker` in their command line or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values()]
            if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE and marker in " ".join(words):
                found.append(process)
        except (psutil.Error, OSError):
            continue  # ended meanwhile
    return found


@pytest.fixture(scope="session")
def eventually() -> Callable[..., bool]:
    """Give the function that waits for a condition, up to a deadline."""
    return _eventually


@pytest.fixture(scope="session")
def processes_with() -> Callable[[str], list[psutil.Process]]:
    """Give the function that finds processes by a marker in their command line or environment."""
    return _processes_with

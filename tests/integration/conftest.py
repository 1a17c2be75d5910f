"""Real lives of small scripts: run with and without the filter, struck at chosen operations, looked at from outside."""

# ruff: noqa: PTH115, PTH116, PTH118, PTH123 - names in a folder are bytes

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chaos.checkpoints.process import Examiner
from chaos.intercept.recorder import Recorder
from chaos.lives.intercepted import run_intercepted
from chaos.lives.polled import run_polled
from chaos.lives.request import LifeRequest, LifeResult
from chaos.lives.starters import FreshStarter, Starter
from chaos.model import CrashPoint, FinishedRecovery, Target, TargetProfile
from chaos.roles import FileNames
from chaos.states.snapshot import Photographer

TARGETS = Path(__file__).with_name("targets")
DEADLINE_S = 30.0


@dataclass(kw_only=True)
class Lives:
    """Runs lives of one target script below a folder, each lineage in an output folder of its own."""

    folder: Path
    examiner: Examiner
    script: str = ""
    arguments: tuple[str, ...] = ()
    profile: TargetProfile = field(default_factory=TargetProfile)
    checkpoints: tuple[str, ...] = ("*",)
    python: tuple[str, ...] = ("-S", "-E")
    command: tuple[str, ...] = ()
    cwd: str = ""
    env: dict[str, str] = field(default_factory=dict)
    number: int = 0

    @property
    def target(self) -> Target:
        """Return the target that the script is."""
        script = (sys.executable, *self.python, str(TARGETS / self.script), "{out}")
        command = (*(self.command or script), *self.arguments)
        return Target(
            command=command,
            resume_command=command,
            checkpoints=self.checkpoints,
            final=(),
            env={"PYTHONHASHSEED": "0", **self.env},
            cwd=self.cwd,
        )

    def new_out(self) -> Path:
        """Make an output folder whose path is as long as any other's."""
        self.number += 1
        out = self.folder / f"{self.number:04d}" / "out"
        out.mkdir(parents=True)
        return out

    def run(
        self,
        out: Path | None = None,
        *,
        point: CrashPoint | None = None,
        is_polled: bool = False,
        deadline_s: float = DEADLINE_S,
        is_first: bool = True,
        starter: Starter | None = None,
        twin: FinishedRecovery | None = None,
        recorder: Recorder | None = None,
    ) -> LifeResult:
        """Run one life, in a new output folder where none is given."""
        out = out or self.new_out()
        request = LifeRequest(
            number=1 if is_first else 2,
            command=self.target.command,
            target=self.target,
            profile=self.profile,
            folder=str(out.parent / f"life-{len(list(out.parent.glob('life-*')))}"),
            out=str(out),
            hash_seed=1,
            deadline_s=deadline_s,
            crash_point=point,
            files="the same",
            twin=twin,
        )
        photographer = Photographer(
            out,
            self.examiner,
            FileNames(self.target, self.profile).name,
            verify=(),
            deadline_s=deadline_s,
            varying_leaves={},
        )
        if is_polled:
            return run_polled(request, photographer, starter or FreshStarter())
        return run_intercepted(request, photographer, starter or FreshStarter(), recorder)

    @property
    def out(self) -> Path:
        """Return the newest output folder."""
        return self.folder / f"{self.number:04d}" / "out"

    def output(self, stream: str = "stdout") -> str:
        """Return what the last life in the newest output folder printed."""
        last = max(self.out.parent.glob("life-*"))
        return (last / f"{stream}.log").read_text(encoding="utf-8", errors="replace")


@pytest.fixture(scope="session")
def examiner() -> Iterator[Examiner]:
    """Give one examiner for the whole run of tests."""
    with Examiner() as one:
        yield one


@pytest.fixture
def lives(tmp_path: Path, examiner: Examiner) -> Callable[..., Lives]:
    """Give a maker of `Lives` of a script with arguments."""

    def make(script: str, *arguments: str, **options: Any) -> Lives:
        folder = tmp_path / f"lives-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        return Lives(folder=folder, examiner=examiner, script=script, arguments=arguments, **options)

    return make


def _tree(folder: Path) -> dict[bytes, tuple[object, ...]]:
    """Return every entry below a folder: type and mode, size and content, or where a link points to."""
    found: dict[bytes, tuple[object, ...]] = {}
    for base, folders, files in os.walk(os.fsencode(folder)):
        for name in (*folders, *files):
            path = os.path.join(base, name)
            state = os.stat(path, follow_symlinks=False)
            content: object = None
            if stat.S_ISLNK(state.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(state.st_mode):
                with open(path, "rb") as file:
                    content = (state.st_size, state.st_nlink, hashlib.sha256(file.read()).hexdigest())
            found[os.path.relpath(path, os.fsencode(folder))] = (oct(state.st_mode), content)
    return found


@pytest.fixture(scope="session")
def tree() -> Callable[[Path], dict[bytes, tuple[object, ...]]]:
    """Give the function that reads a whole folder."""
    return _tree

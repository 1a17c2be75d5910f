"""What this machine allows: each ability tried for real, with what to do where it is missing."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from chaos.checkpoints.process import Examiner
from chaos.errors import ChaosError
from chaos.images import find_usable
from chaos.lives.intercepted import run_intercepted
from chaos.lives.request import LifeRequest
from chaos.lives.starters import FreshStarter
from chaos.model import SCHEMA, LifeEnd, Record, Target, TargetProfile
from chaos.roles import FileNames
from chaos.runs import Environment, this_environment
from chaos.states.snapshot import Photographer

_LEAST_FREE_BYTES = 1 << 30


class Ability(Record, kw_only=True):
    """One thing that the tool needs or can use; `detail` says what was found, or what to do."""

    name: str
    is_there: bool
    is_needed: bool
    detail: str


class Diagnosis(Record, kw_only=True):
    """All abilities of this machine."""

    schema: int = SCHEMA
    environment: Environment
    abilities: tuple[Ability, ...]

    @property
    def is_well(self) -> bool:
        """Tell whether everything that is needed is there."""
        return all(ability.is_there for ability in self.abilities if ability.is_needed)


def diagnose() -> Diagnosis:
    """Try everything once; takes a few seconds."""
    checks: tuple[Callable[[], Ability], ...] = (_interception, _free_space, _strace)
    abilities = (*(check() for check in checks), *_file_systems())
    return Diagnosis(environment=this_environment(), abilities=abilities)


def _interception() -> Ability:
    """Run a tiny life under the filter and see whether its write was seen and carried out."""
    name = "interception (seccomp user notification)"
    try:
        with tempfile.TemporaryDirectory() as folder, Examiner() as examiner:
            is_seen = _try_life(Path(folder), examiner)
    except (ChaosError, OSError) as error:
        hint = "another tracer or a container may forbid it; `chaos run --no-intercept` kills by step line and time"
        return Ability(name=name, is_there=False, is_needed=True, detail=f"{error}; {hint}")
    detail = "a life was followed call by call" if is_seen else "a life ran, but its write was not seen"
    return Ability(name=name, is_there=is_seen, is_needed=True, detail=detail)


def _try_life(folder: Path, examiner: Examiner) -> bool:
    """Run `open(…).write(…)` in a life; True where it was seen and done."""
    out = folder / "out"
    out.mkdir()
    script = "import sys; open(sys.argv[1] + '/x', 'w').write('seen')"
    command = (sys.executable, "-I", "-c", script, "{out}")
    target = Target(command=command, resume_command=command, checkpoints=("x",), final=("x",))
    profile = TargetProfile()
    photographer = Photographer(
        out, examiner, FileNames(target, profile).name, verify=(), deadline_s=30.0, varying_leaves={}
    )
    request = LifeRequest(
        number=1,
        command=command,
        target=target,
        profile=profile,
        folder=str(folder / "life"),
        out=str(out),
        hash_seed=0,
        deadline_s=30.0,
    )
    result = run_intercepted(request, photographer, FreshStarter())
    has_write = any(operation.call == "write" and operation.path == "x" for operation in result.log)
    return result.record.end is LifeEnd.EXITED and has_write and (out / "x").read_text() == "seen"


def _free_space() -> Ability:
    """Look at the disk that runs are kept on."""
    free = shutil.disk_usage(Path.cwd()).free
    return Ability(
        name="free space here",
        is_there=free >= _LEAST_FREE_BYTES,
        is_needed=True,
        detail=f"{free / 1e9:.1f} GB free; a campaign of the bundled trainer needs about 0.2 GB",
    )


def _file_systems() -> Iterator[Ability]:
    """Try to make, mount and cut an image of each kind."""
    for usable in find_usable():
        detail = usable.reason or "an image was made, mounted, and its power cut"
        name = f"chaos powercut --fs {usable.kind}"
        yield Ability(name=name, is_there=usable.is_usable, is_needed=False, detail=detail)


def _strace() -> Ability:
    """Look for the independent judge of the test suite."""
    found = shutil.which("strace", path=os.environ.get("PATH", os.defpath))
    detail = found or "only the test suite uses it; Debian: apt-get install strace"
    return Ability(name="strace", is_there=found is not None, is_needed=False, detail=detail)

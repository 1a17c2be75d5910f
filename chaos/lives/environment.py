"""What a life finds around itself: scratch folders of its own, the probe on its path, trackers offline."""

# ruff: noqa: PTH100, PTH113, PTH118 - a path is made absolute without resolving its links

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import chaos.probe
from chaos.errors import UsageError

PROBE_FOLDER: Final = Path(chaos.probe.__file__).parent / "inject"
# Trackers that would otherwise talk to a server from a life that is about to be killed.
_OFFLINE: Final = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "COMET_START_ONLINE": "0",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "offline",
}
_PRIVATE_FOLDERS: Final = {
    "XDG_CACHE_HOME": "cache",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "MPLCONFIGDIR": "matplotlib",
    "WANDB_DIR": "wandb",
}


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def life_environment(
    base: Mapping[str, str],
    extra: Mapping[str, str],
    *,
    hash_seed: int,
    scratch: Path,
    temporary: Path,
    ticks: Path | None,
    probe_budget: float,
) -> dict[str, str]:
    """Return the environment of a life: `base`, then what the harness sets, then the target's own `extra`.

    `scratch` gets one folder for each variable that names a cache folder; it must exist. `temporary` becomes TMPDIR:
    its path must be short, since worker processes make sockets there, whose paths may have 107 bytes. `ticks` is where
    the probe reports, `probe_budget` the share of step time, in percent, that its digests may take.
    """
    environment = dict(base)
    environment.update(_OFFLINE)
    for variable, name in _PRIVATE_FOLDERS.items():
        folder = scratch / name
        folder.mkdir(exist_ok=True)
        environment[variable] = str(folder)
    environment["TMPDIR"] = str(temporary)
    environment["PYTHONUNBUFFERED"] = "1"
    environment["PYTHONHASHSEED"] = str(hash_seed)
    environment["MASTER_PORT"] = str(free_port())
    environment.update(extra)
    if ticks is not None:
        inherited = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(PROBE_FOLDER), inherited)))
        environment["NINELIVES_TICKS"] = str(ticks)
        environment["NINELIVES_BUDGET"] = f"{probe_budget:g}"
    return environment


def find_executable(command: tuple[str, ...], environment: Mapping[str, str], cwd: str) -> str:
    """Return the absolute path of the command's program; UsageError where there is none."""
    program = command[0]
    if "/" in program:
        found = os.path.join(cwd, program)
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    elif (on_path := shutil.which(program, path=environment.get("PATH", os.defpath))) is not None:
        return os.path.abspath(on_path)
    message = f"the command '{program}' does not exist, or may not be executed"
    raise UsageError(message, hint="check the part after `--`, or [target] command in the scenario")

"""Where and when the benchmark runs."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from .records import Machine

_PACKAGES = ("ninelives", "torch", "numpy")


def this_machine() -> Machine:
    """Describe this machine and the versions that matter."""
    return Machine(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        cores=num_cores(),
        cpu=_cpu_model(),
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        versions={name: metadata.version(name) for name in _PACKAGES},
        load=round(os.getloadavg()[0], 2),
    )


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _cpu_model() -> str:
    """Return the processor's name, as far as the kernel gives one."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or "unknown"

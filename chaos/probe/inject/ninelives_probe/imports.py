"""Lists the modules that the first process had imported at its end: those that a warm template may import before."""

# ruff: noqa: PTH123 - it runs at the end of the target's Python: no pathlib

from __future__ import annotations

import os
import sys


def list_modules(path: str, root: int) -> None:
    """At the end of the process `root`, leave what was imported as JSON at `path`."""
    if os.getpid() != root:
        return
    try:
        import json

        torch = sys.modules.get("torch")
        found = {"modules": _installed_modules(), "uses_cuda": bool(torch and torch.cuda.is_initialized())}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found, file)
    except Exception:  # noqa: BLE001 - whatever a module of the target does when looked at, its end is not disturbed
        return


def _installed_modules() -> list[str]:
    """Return the loaded modules of the standard library and of installed packages, in the order of their import."""
    import site
    import sysconfig

    folders = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    places = tuple(os.path.realpath(folder) + os.sep for folder in folders)
    names = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        origin = getattr(spec, "origin", None)
        is_installed = origin in ("built-in", "frozen") or os.path.realpath(origin or "").startswith(places)
        is_ours = name == "sitecustomize" or name.partition(".")[0] == "ninelives_probe"
        if is_installed and getattr(spec, "name", None) == name and not is_ours:
            names.append(name)
    return names

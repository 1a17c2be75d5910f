"""The probe of Ninelives: a tick at each optimizer step, so that a script that prints nothing has a clock too.

Loaded by the interpreter's `site` because its folder is first on PYTHONPATH. It reports to the file that
NINELIVES_TICKS names that there is an interpreter, arms torch once the target imports it (`ninelives_probe` beside this
file), and hands on to the user's own `sitecustomize`, if there is one.
"""

# ruff: noqa: INP001, PTH100, PTH120 - it runs at every start of the target's Python: no package, no pathlib

from __future__ import annotations

import os
import sys
from contextlib import suppress

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from ninelives_probe.arming import Arming  # type: ignore[import-not-found]

_HERE = os.path.dirname(os.path.abspath(__file__))
_OPTIMIZER = "torch.optim.optimizer"


class _WatchForTorch:
    """A finder that lets all imports pass, and arms the modules that matter once they are loaded."""

    def __init__(self, arming: Arming) -> None:
        """Arm what `arming` names."""
        self._arming = arming
        self._left = set(arming.modules)

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the finder's signature
        target: ModuleType | None = None,  # noqa: ARG002 - the finder's signature
    ) -> ModuleSpec | None:
        """Wrap the loader of a module that matters."""
        if name not in self._left:
            return None
        self._left.discard(name)  # and so the search below passes by here
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            with suppress(Exception):  # another torch than any known: it goes unarmed
                self._arming.modules[name](module)
            if name == _OPTIMIZER:
                reporter.report(b"torch\n")

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _run_users_own() -> None:
    """Run the sitecustomize that would have been found without this one."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    rest = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def restart(path: str) -> None:
    """Report to `path` as a new interpreter would, where this one was forked from another."""
    reporter.go_to(path)
    arming.begin()
    reporter.report(b"interpreter\n")
    if _OPTIMIZER in sys.modules:
        reporter.report(b"torch\n")


if os.environ.get("NINELIVES_TICKS"):
    from ninelives_probe.arming import Arming
    from ninelives_probe.reporter import Reporter  # type: ignore[import-not-found]

    reporter = Reporter(os.environ["NINELIVES_TICKS"])
    arming = Arming(reporter)
    sys.modules["ninelives_probe.running"] = sys.modules[__name__]
    sys.meta_path.insert(0, _WatchForTorch(arming))
    sys.addaudithook(arming.see_event)
    if os.environ.get("NINELIVES_MODULES"):
        import atexit

        from ninelives_probe.imports import list_modules  # type: ignore[import-not-found]

        atexit.register(list_modules, os.environ.pop("NINELIVES_MODULES"), os.getpid())
    reporter.report(b"interpreter\n")
_run_users_own()

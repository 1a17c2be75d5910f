"""The probe of Ninelives: a tick at each optimizer step, so that a script that prints nothing has a clock too.

Loaded by the interpreter's `site` because its folder is first on PYTHONPATH. It waits for `torch.optim.optimizer` to be
imported, registers one global hook, and writes a word to the file that NINELIVES_TICKS names. It draws from no
generator, keeps no tensor, and hands on to the user's own `sitecustomize`, if there is one.
"""

# ruff: noqa: INP001, PTH100, PTH120 - it runs at every start of the target's Python: no package, no pathlib

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))
_OPTIMIZER = "torch.optim.optimizer"
_HIGH_FD = 200


class _Reporter:
    """Appends words to the file of ticks; a target that closed, lost or reused its descriptor is not disturbed."""

    def __init__(self, path: str) -> None:
        """Report to `path`, whatever becomes of the environment and of the working folder later."""
        self._path = path
        self._fd = -1
        self._identity: tuple[int, int] | None = None

    def go_to(self, path: str) -> None:
        """Report to another file from now on."""
        if self._identity is not None and self._is_open():
            os.close(self._fd)
        self._path, self._identity = path, None

    def report(self, word: bytes) -> None:
        """Append one word, through the descriptor that was kept if it is still the file's."""
        try:
            if not self._is_open():
                self._open()
            os.write(self._fd, word)
        except OSError:
            return

    def _is_open(self) -> bool:
        """Tell whether the number that was kept still means the file: the target may have closed and reused it."""
        if self._identity is None:
            return False
        try:
            state = os.fstat(self._fd)
        except OSError:
            return False
        return (state.st_dev, state.st_ino) == self._identity

    def _open(self) -> None:
        """Open the file under a high number, so that the target's own numbers stay as they are."""
        import fcntl

        self._identity = None
        low = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            self._fd = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
            os.close(low)
        except OSError:
            self._fd = low  # so few descriptors are allowed that there is no high number
        state = os.fstat(self._fd)
        self._identity = (state.st_dev, state.st_ino)


_reporter = _Reporter(os.environ.get("NINELIVES_TICKS", ""))


def _after_step(optimizer: object, args: object, kwargs: object) -> None:  # noqa: ARG001 - the hook's signature
    """Tell that an optimizer has done a step."""
    _reporter.report(b"tick\n")


def restart(path: str) -> None:
    """Report to `path` as a new interpreter would, where this one was forked from another."""
    _reporter.go_to(path)
    _reporter.report(b"interpreter\n")
    if _OPTIMIZER in sys.modules:
        _reporter.report(b"torch\n")


def _list_modules(path: str, root: int) -> None:
    """At the end of the first process, leave the names of all modules that a warm template may import before."""
    if os.getpid() != root:
        return
    try:
        import json

        torch = sys.modules.get("torch")
        found = {"modules": _installed_modules(), "uses_cuda": bool(torch and torch.cuda.is_initialized())}
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - no pathlib here
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
        if is_installed and getattr(spec, "name", None) == name and name != "sitecustomize":
            names.append(name)
    return names


class _WatchForTorch:
    """A finder that lets all imports pass, and adds the hook once the optimizers are loaded."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the finder's signature
        target: ModuleType | None = None,  # noqa: ARG002 - the finder's signature
    ) -> ModuleSpec | None:
        """Wrap the loader of the one module that matters."""
        if name != _OPTIMIZER:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            register = getattr(module, "register_optimizer_step_post_hook", None)
            if register is not None:
                register(_after_step)
            _reporter.report(b"torch\n")

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


if os.environ.get("NINELIVES_TICKS"):
    sys.modules["ninelives_probe"] = sys.modules[__name__]
    sys.meta_path.insert(0, _WatchForTorch())
    if os.environ.get("NINELIVES_MODULES"):
        import atexit

        atexit.register(_list_modules, os.environ.pop("NINELIVES_MODULES"), os.getpid())
    _reporter.report(b"interpreter\n")
_run_users_own()

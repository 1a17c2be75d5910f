"""Which globals in a pickle no checkpoint needs: those that run programs or code, or reach out of the process.

The inert unpickler runs none of them in any case. Where two files are compared by hand a file that asks for one is not
shown as data but refused: somebody meant harm, and whoever loads it in earnest should know.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from chaos.checkpoints.damage import UnjudgeableError

_refuses_hostile: ContextVar[bool] = ContextVar("refuses_hostile", default=False)
HOSTILE_MODULES = frozenset({
    "_posixsubprocess", "_thread", "asyncio", "bdb", "code", "codeop", "commands", "ctypes", "http", "importlib",
    "multiprocessing", "nt", "os", "pdb", "pip", "posix", "profile", "pty", "requests", "runpy", "shutil", "signal",
    "socket", "subprocess", "sys", "timeit", "trace", "urllib", "webbrowser",
})  # fmt: skip
HOSTILE_BUILTINS = frozenset({
    "__import__", "breakpoint", "compile", "delattr", "eval", "exec", "execfile", "exit", "file", "globals", "input",
    "locals", "open", "quit", "setattr", "vars",
})  # fmt: skip


def _is_hostile(module: str, name: str) -> bool:
    """Tell whether a global is one that runs programs or code, or reaches out, which no checkpoint needs."""
    if module in {"builtins", "__builtin__"}:
        return name.partition(".")[0] in HOSTILE_BUILTINS
    # A method of a path (`Path.touch`) acts on the disk; the path itself is data. `torch os.system` is `os.system`.
    is_method_of_path = module.startswith("pathlib") and "." in name
    return is_method_of_path or not HOSTILE_MODULES.isdisjoint((module.partition(".")[0], *name.split(".")))


def require_harmless(module: str, name: str) -> None:
    """Raise UnjudgeableError for a hostile global, if such are to be refused."""
    if _refuses_hostile.get() and _is_hostile(module, name):
        shown = f"{module}.{name}".encode("utf-8", "backslashreplace").decode()
        raise UnjudgeableError(f"its pickle would call {shown}: a hostile file; nothing of it was run")


@contextmanager
def refusing_hostile() -> Iterator[None]:
    """Raise UnjudgeableError for a pickle that asks for what no checkpoint needs, instead of reading it inertly."""
    token = _refuses_hostile.set(True)
    try:
        yield
    finally:
        _refuses_hostile.reset(token)

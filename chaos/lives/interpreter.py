"""Run a Python program as the interpreter does, from `__main__` to the end; used in lives forked from a template.

The end differs in one thing: the modules that the template had imported are not taken down one by one, which costs a
third of a second with torch. What is the program's own is: its threads are waited for, handlers at exit are called, its
modules are cleared so that finalizers run and files are flushed, and the streams are flushed.
"""

# ruff: noqa: PTH100, PTH109, PTH112, PTH120, PTH123, SLF001 - paths and steps as the interpreter has them

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import threading
import weakref
from contextlib import suppress
from types import CodeType, ModuleType, TracebackType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def run(python: dict[str, Any]) -> None:
    """Run a script, module or code as `__main__`, and end the process as it asks for; returns only to be interrupted.

    Raises KeyboardInterrupt where the program left it uncaught: the interpreter itself must end by the signal then.
    """
    known = set(sys.modules) - {"__main__"}
    status = _call(lambda: _run_program(python))
    _end(status, known)


def _run_program(python: dict[str, Any]) -> None:
    """Find the program as the interpreter finds it, and run it."""
    kind, name, arguments = python["kind"], python["name"], python["arguments"]
    sys.orig_argv = [sys.executable, *python["options"], *([f"-{kind}"] if kind != "script" else []), name, *arguments]
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = main
    if "__mp_main__" in sys.modules:
        sys.modules["__mp_main__"] = main
    sys.argv = [name if kind == "script" else f"-{kind}", *arguments]
    if kind == "m":
        _prepend_path(os.getcwd())
        _runpy()._run_module_as_main(name)
    elif kind == "c":
        _prepend_path("")
        exec(compile(name, "<string>", "exec", dont_inherit=True), main.__dict__)  # noqa: S102 - it is the target
    elif os.path.isdir(name) or _is_archive(name):
        sys.path.insert(0, os.path.abspath(name))
        _runpy()._run_module_as_main("__main__", alter_argv=False)
    else:
        _prepend_path(os.path.dirname(os.path.realpath(name)))
        _run_file(name, main)


def _runpy() -> Any:  # noqa: ANN401 - a module
    import runpy

    return runpy


def _is_archive(name: str) -> bool:
    """Tell whether a script is an archive with a `__main__` in it."""
    with suppress(OSError), open(name, "rb") as file:
        return file.read(4) == b"PK\x03\x04"
    return False


def _prepend_path(entry: str) -> None:
    """Put what the interpreter puts first on its path, unless it was told not to."""
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path.insert(0, entry)


def _run_file(name: str, main: ModuleType) -> None:
    """Run a script's file."""
    from importlib.machinery import SourceFileLoader

    path = os.path.abspath(name)
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    main.__dict__["__cached__"] = None
    exec(_compiled(name, path), main.__dict__)  # noqa: S102 - it is the target


def _compiled(name: str, path: str) -> CodeType:
    """Compile a script; where it cannot be read, say so as the interpreter does."""
    try:
        with open(name, "rb") as file:
            return compile(file.read(), path, "exec", dont_inherit=True)
    except OSError as error:
        sys.stderr.write(f"{sys.executable}: can't open file '{path}': [Errno {error.errno}] {error.strerror}\n")
        raise SystemExit(2) from None


def _call(program: Callable[[], None]) -> int:
    """Run the program and return its exit status; an exception that it left is told without the frames of this file."""
    try:
        program()
    except SystemExit as end:
        return _status_of(end)
    except BaseException as error:
        trace = _without_ours(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        if isinstance(error, KeyboardInterrupt):
            sys.excepthook = lambda *_: None  # told already; but the interpreter must see it, to end by the signal
            raise
        return 1
    return 0


def _status_of(end: SystemExit) -> int:
    """Return the exit status that a SystemExit asks for; what is no number is printed."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    with suppress(Exception):
        sys.stderr.write(f"{end.code}\n")
    return 1


def _end(status: int, known: set[str]) -> None:
    """End the process as the interpreter does, but leave the modules in `known` as they are."""
    with suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    _flush()
    _flush_files()
    _clear([sys.modules.pop(name) for name in list(sys.modules) if name not in known])
    _flush()
    os._exit(status)


def _clear(modules: list[Any]) -> None:
    """Let go of modules: those that nobody holds go at once, the others are emptied, the last imported first."""
    references = [weakref.ref(module) for module in modules if isinstance(module, ModuleType)]
    modules.clear()
    gc.collect()
    for reference in reversed(references):
        module = reference()
        if module is not None:
            _empty(vars(module))
    gc.collect()


def _empty(names: dict[str, Any]) -> None:
    """Give up what a module's names stand for, those that begin with an underscore first."""
    private = [name for name in names if name.startswith("_") and not name.startswith("__")]
    others = [name for name in names if name != "__builtins__" and name not in private]
    for name in (*private, *others):
        names[name] = None


def _flush_files() -> None:
    """Write out what open files hold: taken down together, one might be closed before the buffer that it is under."""
    for kind in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom):
        for one in gc.get_objects():
            if issubclass(type(one), kind):
                with suppress(Exception):
                    one.flush()


def _flush() -> None:
    """Write out what the streams still hold."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the first frame on that is not of this file."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace

"""A warm template: it has imported what the target imports, and forks a life on demand. A program of its own.

Run by the target's own Python, with the target's own options, as `python … template.py`; it imports nothing of the
project but `guardian.py` and `interpreter.py` beside it, and is the guardian of its lives, one at a time. Standard
input: one line of JSON (the configuration: modules to import, number of the socket), then commands, a line each:
`launch {…}` forks a life with that plan, `kill` ends it. The socket carries what a guardian's does, and `ready` after
the warm-up.

A life gets what a start would give it: argv, environment, working folder, streams, signals as they were, `__main__`,
fresh generators, the default number of threads. What it does not get: a hash seed of its own, import side effects
of its own, an empty heap.
"""

# ruff: noqa: PTH100, PTH118, PTH120, PTH208 - paths as the interpreter does

from __future__ import annotations

import gc
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from types import ModuleType

TYPE_CHECKING = False
_HERE = os.path.dirname(os.path.abspath(__file__))
if TYPE_CHECKING:
    from typing import Any

    from chaos.lives import guardian, interpreter
else:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

    def _beside(name: str) -> ModuleType:
        """Load a module that lies beside this file, under a name of ours: the target may have one of this name."""
        spec = importlib.util.spec_from_file_location(f"ninelives_{name}", os.path.join(_HERE, f"{name}.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    guardian, interpreter = _beside("guardian"), _beside("interpreter")


# --- in the template ------------------------------------------------------------------------------------


def warm_up(modules: list[str]) -> dict[str, Any]:
    """Import `modules` in their order and do one optimizer step; say what could not be imported alone, and the threads.

    A thread that the step leaves behind would be missing in every life; those of imports (numpy's BLAS) survive.
    """
    failed = []
    for name in modules:
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except BaseException:  # noqa: BLE001 - whatever a module does when imported alone, the life imports it itself
                failed.append(name)
    started = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    threads = num_threads()
    if "torch" in sys.modules:
        _warm_torch()
    gc.collect()
    gc.freeze()  # so that a collection in a life does not touch, and so copy, every page
    return {"failed_modules": failed[:20], "threads_left": num_threads() - threads, "threads_started": started[:5]}


def _warm_torch() -> None:
    """Build one optimizer and do one step: the first one imports for a second.

    On one thread: a pool of OpenMP's would not survive the fork, and each life would hang in its first parallel region.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    state = torch.get_rng_state()
    weight = torch.nn.Parameter(torch.zeros(2, 2))
    optimizer = torch.optim.AdamW([weight])
    (weight * weight).sum().backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    optimizer.zero_grad()
    torch.set_rng_state(state)
    global _threads  # noqa: PLW0603 - handed to every life
    _threads = threads


_threads = 0
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def num_threads() -> int:
    """Count this process's threads."""
    return len(os.listdir("/proc/self/task"))


class Template(guardian.Guardian):
    """Waits for commands and forks lives, each of which it guards until it is ended."""

    def __init__(self, channel: socket.socket, folder: str) -> None:
        """Serve the supervisor behind `channel`; `folder` is this template's own, removed at its end."""
        super().__init__(channel, root=-1)
        self.handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self.listeners: list[int] = []
        self.temporary = ""
        self.folder = folder

    def serve(self) -> dict[str, Any] | None:
        """Fork and guard lives until the supervisor is gone (None); in a life, return its plan."""
        guardian.refuse_signals()
        self.listen()
        self.kill_all()  # what an import has started is nobody's
        poll = select.poll()
        poll.register(0, select.POLLIN | select.POLLHUP)
        poll.register(self.wakeup_fds[0], select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self.wakeup_fds[0] in ready:
                self.drain()
            if 0 in ready:
                line = guardian.read_line()
                if not line:
                    self.kill_all()
                    guardian.remove(self.temporary)
                    guardian.remove(self.folder)
                    return None
                command, _, plan = line.partition(b" ")
                if command == b"launch":
                    config: dict[str, Any] = json.loads(plan)
                    if self.fork(config):
                        return config
                else:
                    self.end_life()
                    self.forget()

    def fork(self, config: dict[str, Any]) -> bool:
        """Fork a life; True in the life, when all is ready for the target's own code."""
        self.killed.clear()
        self.temporary = config["temporary"]
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sys.stdout.flush()
        sys.stderr.flush()
        self.root = os.fork()
        if self.root == 0:
            mine.close()
            try:
                self.become_life(config, theirs)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the supervisor must hear of it
                guardian.send(self.channel, {"event": "failed", "error": str(error)})
                os._exit(127)
            return True
        theirs.close()
        _, self.listeners, _, _ = socket.recv_fds(mine, 4096, 1)  # kept, so that calls stay blocked without supervisor
        mine.close()
        self.reap(os.WNOHANG)
        return False

    def forget(self) -> None:
        """Give up what belonged to the life that has ended."""
        for fd in self.listeners:
            os.close(fd)
        self.listeners = []

    def become_life(self, config: dict[str, Any], to_guardian: socket.socket) -> None:
        """In the child: undo what makes this a template, set the stage, and install the filter."""
        signal.set_wakeup_fd(-1)
        guardian.set_stage(config)
        for fd in self.wakeup_fds:
            os.close(fd)
        for number, handler in self.handlers.items():
            is_inherited = handler == signal.SIG_IGN and number not in _IGNORED_BY_PYTHON  # of `nohup`, not of a start
            if handler is not None and handler != signal.SIG_DFL and not is_inherited:
                with suppress(OSError, ValueError):
                    signal.signal(number, handler)
        os.environ.clear()
        os.environ.update(config["env"])
        _renew_generators()
        _restore_threads()
        guardian.hand_over(config, self.channel, to_guardian)
        self.channel.close()
        to_guardian.close()
        _report_start(config["env"].get("NINELIVES_TICKS", ""))


# --- in a life ------------------------------------------------------------------------------------------


def _renew_generators() -> None:
    """Seed from the system what a start seeds from the system."""
    for name in ("random", "numpy.random", "torch"):
        if name in sys.modules:
            sys.modules[name].seed()
    if "tempfile" in sys.modules:
        vars(sys.modules["tempfile"])["tempdir"] = None  # TMPDIR is another one


def _restore_threads() -> None:
    """Let torch have as many threads as a start gives it."""
    if _threads:
        sys.modules["torch"].set_num_threads(_threads)


def _report_start(ticks: str) -> None:
    """Let the probe report to this life's file, from the start on."""
    probe = sys.modules.get("ninelives_probe.running")
    if probe is not None and ticks:
        probe.restart(ticks)


def main() -> None:
    """Warm up, serve, and in a life run the target to the interpreter's own end."""
    line = guardian.read_line()
    if not line:
        return
    config = json.loads(line)
    channel = socket.socket(fileno=config["channel"])
    channel.set_inheritable(False)
    facts = warm_up(config["modules"])
    template = Template(channel, config["folder"])
    guardian.send(channel, {"event": "ready", **facts})
    plan = template.serve()
    if plan is None:
        os._exit(0)
    interpreter.run(plan["python"])


if __name__ == "__main__":
    main()

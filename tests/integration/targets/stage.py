"""Tell everything that a start gives a program: `python stage.py OUT [HOW]`."""

# ruff: noqa: ANN201, ANN204, SIM115, PTH109, PTH110, PTH112, PTH118, PTH120, PTH123, PTH208, T201 - written as a user writes

import atexit
import json
import os
import signal
import sys
import threading

import __main__

out, how = sys.argv[1], (sys.argv[2:] or ["nothing"])[0]
VARYING = ("MASTER_PORT", "TMPDIR", "NINELIVES_TICKS", "PYTHONHASHSEED")


class Mine:
    """A class of the main module, as users pickle them."""


def descriptors():
    """Return the numbers of the open descriptors."""
    return sorted(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}"))


def facts():
    """Return what this program found when it started."""
    mask = os.umask(0)
    os.umask(mask)
    spec = __main__.__spec__
    return {
        "argv": sys.argv[:1] + sys.argv[2:],
        "original": [word.replace(out, "OUT") for word in sys.orig_argv[1:]],
        "path": sys.path,
        "flags": list(map(int, sys.flags)),
        "main": [
            __name__,
            __main__.__dict__.get("__file__"),
            getattr(spec, "name", None),
            __main__ is sys.modules["__main__"],
        ],
        "package": __main__.__dict__.get("__package__"),
        "class": Mine.__module__,
        "cwd": os.getcwd(),
        "env": {k: v for k, v in sorted(os.environ.items()) if k not in VARYING and os.path.dirname(out) not in v},
        "signals": {int(n): repr(signal.getsignal(n)) for n in signal.valid_signals()},
        "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
        "descriptors": descriptors(),
        "umask": mask,
        "leader": os.getsid(0) == os.getpid(),
        "streams": [[s.encoding, s.line_buffering, s.write_through, s.fileno()] for s in (sys.stdout, sys.stderr)],
        "input": sys.stdin.read(),
        "threads": threading.active_count(),
        "temporary": os.path.isdir(os.environ["TMPDIR"]),
        "handler": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    }


def end():
    """End in one of the ways in which programs end."""
    atexit.register(lambda: print("at exit", flush=True))
    thread = threading.Thread(target=lambda: print("in a thread", flush=True))
    thread.start()
    if how in ("at_once", "signal"):
        thread.join()
    if how == "status":
        sys.exit(3)
    if how == "message":
        sys.exit("a message")
    if how == "error":
        raise ValueError("an error")
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "at_once":
        os._exit(5)
    if how == "signal":
        os.kill(os.getpid(), signal.SIGTERM)


class Finalized:
    """Tells when it is finalized, as the interpreter takes the program down."""

    def __del__(self):
        """Write to standard output."""
        os.write(1, b"finalized\n")


kept = Finalized()
cycle = [Finalized()]
cycle.append(cycle)
never_closed = open(os.path.join(out, "never_closed"), "w")
never_closed.write("flushed at the end")
sys.stdout.write("no newline at the end")
with open(os.path.join(out, "facts.json"), "w") as file:
    json.dump(facts(), file)
end()

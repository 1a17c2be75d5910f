"""Try to get away from whoever started this: `python escape.py OUT HOW`. What gets away runs for ten minutes."""

# ruff: noqa: ANN001, ANN201, PTH118, S606, SIM102 - written as a user writes

import os
import signal
import subprocess
import sys
import time

out, how = sys.argv[1], sys.argv[2]


def note(name):
    """Leave an empty file, as a sign for the test."""
    os.close(os.open(os.path.join(out, name), os.O_WRONLY | os.O_CREAT))


def compute():
    """Only compute: no system call that anybody could hold."""
    limit = time.monotonic() + 600
    while time.monotonic() < limit:
        pass


def double_fork():
    """Make a process in a session of its own whose parent is gone, and return in the first process alone."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            compute()
        os._exit(0)
    os.waitpid(child, 0)


def kill_root(then_write):
    """End the first process from a child, by SIGKILL or by its own exit, and write a file afterwards."""
    root = os.getpid()
    if os.fork() == 0:
        if then_write == "killed":
            os.kill(root, signal.SIGKILL)
        while os.getppid() == root:
            time.sleep(0.001)
        note("state")
        os._exit(0)
    if then_write == "killed":
        compute()
    sys.exit(0)


if how in ("daemon", "daemon_left"):
    double_fork()
    note("ready")
    if how == "daemon":
        compute()
elif how == "close_all":
    os.closerange(0, 4096)
    note("ready")
    compute()
elif how == "ignore_signals":
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    note("ready")
    compute()
elif how == "execute_itself":
    note("ready")
    os.execv(sys.executable, [sys.executable, "-S", "-E", *sys.orig_argv[3:-1], "ignore_signals"])
elif how == "stopped":
    note("ready")
    os.kill(os.getpid(), signal.SIGSTOP)
elif how == "many":
    note("ready")
    for _ in range(20):
        subprocess.Popen([sys.executable, "-S", "-E", *sys.orig_argv[3:-1], "ignore_signals"], start_new_session=True)
    compute()
elif how == "kill_guardian":
    double_fork()
    note("ready")
    os.kill(os.getppid(), signal.SIGKILL)
    compute()
elif how in ("killed", "ended"):
    kill_root(how)
elif how == "end_itself":
    note("before")
    os.kill(os.getpid(), signal.SIGKILL)
    note("state")
elif how == "helper":
    if os.fork() == 0:
        time.sleep(0.3)
        note("late")
        os._exit(0)

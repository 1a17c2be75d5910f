"""A life forked from a warm template is what a start would have been; what a fork cannot give is known."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from chaos.errors import HarnessError, UsageError
from chaos.lives.python_command import Kind, read_python_command
from chaos.lives.starters import FreshStarter, WarmPlan, WarmStarter
from chaos.model import Address, CrashPoint, LifeEnd, Phase

TARGETS = Path(__file__).with_name("targets")
AT_STATE = CrashPoint(address=Address(save=1, file="state", incarnation=1, call="openat"), expected_phase=Phase.SAVE)


@pytest.fixture
def warm() -> Iterator[WarmStarter]:
    """Give a starter whose templates import nothing but themselves."""
    with WarmStarter(WarmPlan(modules=("json", "tempfile", "random"))) as starter:
        yield starter


@pytest.fixture(scope="module")
def warm_torch() -> Iterator[WarmStarter]:
    """Give a starter whose template has imported torch and numpy."""
    with WarmStarter(WarmPlan(modules=("numpy", "numpy.random", "torch", "torch._dynamo"))) as starter:
        yield starter


def commands(tmp_path: Path) -> dict[str, tuple[str, ...]]:
    """Return the ways to start the same program: a script, a module, code, a folder, an archive."""
    source = (TARGETS / "stage.py").read_text(encoding="utf-8")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "__main__.py").write_text(source, encoding="utf-8")
    (tmp_path / "staged.py").write_text(source, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(source, encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "archive.pyz", "w") as archive:
        archive.writestr("__main__.py", source)
    return {
        "script": ("staged.py",),
        "path": (str(tmp_path / "staged.py"),),
        "module": ("-m", "staged"),
        "package": ("-m", "package"),
        "safe": ("-P", "-O", "staged.py"),
        "code": ("-c", source),
        "folder": ("folder",),
        "archive": ("archive.pyz",),
    }


@pytest.mark.parametrize("way", ["script", "path", "module", "package", "safe", "code", "folder", "archive"])
def test_a_life_finds_what_a_start_gives_it(
    lives: Callable[..., Any], warm: WarmStarter, tmp_path: Path, way: str
) -> None:
    """argv, path, flags, `__main__`, environment, folder, streams, signals, descriptors: all as in a fresh start."""
    command = commands(tmp_path)[way]
    seen = {}
    for name, starter in (("fresh", FreshStarter()), ("warm", warm)):
        runner = lives("stage.py", python=(), command=(sys.executable, *command, "{out}"), cwd=str(tmp_path))
        record = runner.run(starter=starter).record
        assert (record.end, record.exit_status) == (LifeEnd.EXITED, 0), runner.output("stderr")
        seen[name] = json.loads((runner.out / "facts.json").read_text())
    assert seen["warm"].pop("cwd") == seen["fresh"].pop("cwd") == str(tmp_path)
    for fact, value in seen["fresh"].items():
        assert seen["warm"][fact] == value, fact


def test_what_is_ignored_around_the_harness_is_not_in_a_life(lives: Callable[..., Any], warm: WarmStarter) -> None:
    """Under `nohup` too, SIGHUP ends a life, warm or fresh."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        for starter in (FreshStarter(), warm):
            runner = lives("stage.py", python=())
            runner.run(starter=starter)
            facts = json.loads((runner.out / "facts.json").read_text())
            assert facts["signals"][str(int(signal.SIGHUP))] == repr(signal.SIG_DFL), facts["signals"]
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("how", ["nothing", "status", "message", "error", "interrupt", "at_once", "signal"])
def test_a_life_ends_as_a_start_does(lives: Callable[..., Any], warm: WarmStarter, how: str) -> None:
    """Exit status or signal, what is printed on both streams, handlers at exit and threads: all as in a fresh start."""
    seen: list[Any] = []
    for starter in (FreshStarter(), warm):
        runner = lives("stage.py", how, python=())
        record = runner.run(starter=starter).record
        flushed = (runner.out / "never_closed").read_text()
        ended = (record.end, record.exit_status, record.signal, flushed)
        seen.append((*ended, runner.output(), runner.output("stderr")))
    assert seen[0] == seen[1]
    assert seen[0][0] is (LifeEnd.SIGNALLED if how in ("interrupt", "signal") else LifeEnd.EXITED)


def test_generators_are_fresh_in_every_life(lives: Callable[..., Any], warm_torch: WarmStarter) -> None:
    """What nobody has seeded differs from life to life, in torch, numpy and random; the hash seed alone is shared."""
    drawn = []
    for _ in range(3):
        runner = lives("generators.py", "draw", python=())
        assert runner.run(starter=warm_torch).record.exit_status == 0, runner.output("stderr")
        drawn.append(json.loads((runner.out / "drawn.json").read_text()))
    for name in ("random", "numpy", "torch"):
        assert len({one[name] for one in drawn}) == len(drawn), name
    assert len({one["hash"] for one in drawn}) == 1


def test_parallel_regions_do_not_hang_and_give_the_same_bits(
    lives: Callable[..., Any], warm_torch: WarmStarter
) -> None:
    """A life has as many threads as a start, computes on them, and ends with a fresh start's bits."""
    seen = []
    for starter in (FreshStarter(), warm_torch, warm_torch):
        runner = lives("generators.py", "compute", python=())
        record = runner.run(starter=starter, deadline_s=60).record
        assert (record.end, record.exit_status) == (LifeEnd.EXITED, 0), runner.output("stderr")
        seen.append(json.loads((runner.out / "drawn.json").read_text()))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0]["pool"] == (seen[0]["threads"] > 1)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_finds_the_main_module(lives: Callable[..., Any], warm: WarmStarter, method: str) -> None:
    """Classes of `__main__` go to worker processes and back, however those are started; annotations stay as written."""
    runner = lives("worker_pool.py", method, python=())
    record = runner.run(starter=warm).record
    assert (record.end, record.exit_status) == (LifeEnd.EXITED, 0), runner.output("stderr")
    assert runner.output().splitlines() == ["2 3", "<class 'int'>"]


def test_a_package_that_starts_a_thread_is_refused(lives: Callable[..., Any], tmp_path: Path) -> None:
    """A thread of an import would be missing in each life: a sentence that names what to use instead."""
    (tmp_path / "threaded.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True, name='worker').start()\n"
    )
    runner = lives("stage.py", python=(), env={"PYTHONPATH": str(tmp_path)})
    with (
        WarmStarter(WarmPlan(modules=("threaded",))) as starter,
        pytest.raises(UsageError, match=r"starts a thread \(worker\)(.|\n)*--lives fresh"),
    ):
        runner.run(starter=starter)


def test_a_template_whose_supervisor_ends_leaves_no_folder(tmp_path: Path) -> None:
    """The supervisor ends without a word, in the middle of a life or not: the template removes its folder itself."""
    code = (
        "import os, sys\n"
        "from chaos.lives.starters import WarmPlan, WarmStarter\n"
        "from chaos.lives.process import LaunchPlan\n"
        "folder = sys.argv[1]\n"
        "for name in ('stdout', 'stderr'): open(os.path.join(folder, name), 'w').close()\n"
        "plan = LaunchPlan(executable=sys.executable, command=('python', '-c', 'import time; time.sleep(60)'),\n"
        "    env=dict(os.environ), cwd=folder, stdout=os.path.join(folder, 'stdout'),\n"
        "    stderr=os.path.join(folder, 'stderr'), filter='', seccomp=0)\n"
        "WarmStarter(WarmPlan(modules=())).start(plan)\n"
        "print(len([name for name in os.listdir(os.environ['TMPDIR']) if name.startswith('9l-')]), flush=True)\n"
        "os._exit(3)\n"
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert (done.returncode, done.stdout) == (3, "1\n"), done.stderr
    deadline = time.monotonic() + 10
    while list(temporary.glob("9l-*")) and time.monotonic() < deadline:
        os.sched_yield()
    assert list(temporary.glob("9l-*")) == []


def test_a_warm_up_that_leaves_threads_is_refused(lives: Callable[..., Any], tmp_path: Path) -> None:
    """A thread that an optimizer's step starts would be missing in each life: nothing is forked from it."""
    site = tmp_path / "site"
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text(
        "import threading\n"
        "def get_num_threads():\n"
        "    threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "    return 1\n"
        "def set_num_threads(n): pass\n"
        "def get_rng_state(): pass\n"
        "def set_rng_state(s): pass\n"
        "def zeros(*a): return Anything()\n"
        "class Anything:\n"
        "    def __init__(self, *a): pass\n"
        "    def __mul__(self, o): return self\n"
        "    def __getattr__(self, n): return lambda *a: self\n"
        "class nn: Parameter = Anything\n"
        "class optim: AdamW = Anything\n"
    )
    runner = lives("stage.py", python=(), env={"PYTHONPATH": str(site)})
    with WarmStarter(WarmPlan(modules=("torch",))) as starter, pytest.raises(HarnessError, match="left threads"):
        runner.run(starter=starter)


def test_strikes_land_in_one_life_after_the_other(
    lives: Callable[..., Any], warm: WarmStarter, processes_with: Callable[..., Any]
) -> None:
    """The same template gives a struck life, one that ends by itself, and a struck one again; nobody is left."""
    for point in (AT_STATE, None, AT_STATE):
        runner = lives("escape.py", "helper")
        record = runner.run(starter=warm, point=point).record
        if point is None:
            assert (record.end, record.orphans, record.unseen_writers) == (LifeEnd.EXITED, (), ())
        assert processes_with(str(runner.out)) == []


@pytest.mark.parametrize("how", ["daemon", "close_all", "ignore_signals", "execute_itself", "stopped", "many"])
def test_the_deadline_ends_every_process_of_a_warm_life(
    lives: Callable[..., Any], warm: WarmStarter, processes_with: Callable[..., Any], how: str
) -> None:
    """A life that hangs is ended, whatever it closed, forked or became; the next one is as good as the first."""
    for _ in range(2):
        runner = lives("escape.py", how)
        record = runner.run(deadline_s=0.6, starter=warm).record
        assert record.end is LifeEnd.DEADLINE
        assert (runner.out / "ready").exists()
        assert processes_with(str(runner.out)) == []


def test_a_target_that_forks_and_exits_leaves_an_orphan(lives: Callable[..., Any], warm: WarmStarter) -> None:
    """The root ends with 0, its daemon goes on: it is named and ended, and no later life is blamed for it."""
    runner = lives("escape.py", "daemon_left")
    assert len(runner.run(starter=warm).record.orphans) == 1
    runner = lives("escape.py", "helper")
    assert runner.run(starter=warm).record.orphans == ()


def test_a_template_that_dies_is_an_error_of_ours(
    lives: Callable[..., Any], processes_with: Callable[..., Any]
) -> None:
    """SIGKILL to the template in mid-life: a sentence, and no process left."""
    runner = lives("escape.py", "kill_guardian")
    with WarmStarter(WarmPlan(modules=())) as starter, pytest.raises(HarnessError, match="guardian"):
        runner.run(starter=starter)
    assert processes_with(str(runner.out)) == []


def test_a_template_that_dies_between_lives_is_an_error_of_ours(lives: Callable[..., Any], warm: WarmStarter) -> None:
    """The next life cannot be started, and that is said."""
    runner = lives("escape.py", "helper")
    runner.run(starter=warm)
    running = [p for p in psutil.Process().children() if p.status() != psutil.STATUS_ZOMBIE]
    templates = [p for p in running if "template.py" in " ".join(p.cmdline())]
    template = max(templates, key=psutil.Process.create_time)
    template.send_signal(signal.SIGKILL)
    template.wait(10)
    with pytest.raises(HarnessError, match="ended unexpectedly"):
        lives("escape.py", "helper").run(starter=warm)


def test_an_import_that_ends_the_template_is_told(lives: Callable[..., Any], tmp_path: Path) -> None:
    """A module that ends the process when it is imported alone: a sentence that names what to use instead."""
    (tmp_path / "fatal.py").write_text("import os\nos._exit(9)\n")
    runner = lives("stage.py", python=(), env={"PYTHONPATH": str(tmp_path)})
    with (
        WarmStarter(WarmPlan(modules=("fatal",))) as starter,
        pytest.raises(HarnessError, match=r"ended while it imported(.|\n)*--lives fresh"),
    ):
        runner.run(starter=starter)


def test_no_descriptor_and_no_folder_is_left(lives: Callable[..., Any]) -> None:
    """A starter that is closed has given everything back."""
    before = {path.name for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}
    with WarmStarter(WarmPlan(modules=())) as starter:
        for _ in range(3):
            lives("escape.py", "helper").run(starter=starter)
    assert {path.name for path in Path("/proc/self/fd").iterdir() if path.is_symlink()} == before


@pytest.mark.parametrize(
    ("words", "options", "kind", "name", "arguments"),
    [
        (("train.py", "-x"), (), Kind.SCRIPT, "train.py", ("-x",)),
        (("-P", "-m", "trainer", "--out", "o"), ("-P",), Kind.MODULE, "trainer", ("--out", "o")),
        (("-uBm", "a.b"), ("-uB",), Kind.MODULE, "a.b", ()),
        (("-Wignore", "-X", "dev", "s.py"), ("-Wignore", "-X", "dev"), Kind.SCRIPT, "s.py", ()),
        (("-Xdev", "-W", "error", "-c", "pass", "-m"), ("-Xdev", "-W", "error"), Kind.CODE, "pass", ("-m",)),
        (("-cpass",), (), Kind.CODE, "pass", ()),
        (("--check-hash-based-pycs", "never", "s.py"), ("--check-hash-based-pycs", "never"), Kind.SCRIPT, "s.py", ()),
    ],
)
def test_command_lines_are_read_as_python_reads_them(
    words: tuple[str, ...], options: tuple[str, ...], kind: Kind, name: str, arguments: tuple[str, ...]
) -> None:
    """Options, what is run, and its arguments, from the same words."""
    read = read_python_command("/usr/bin/python3.11", ("python", *words))
    assert (read.options, read.kind, read.name, read.arguments) == (options, kind, name, arguments)


def test_a_script_that_names_python_is_read_as_its_first_line_says(tmp_path: Path) -> None:
    """`tool --flag` with `#!/…/python -P` is `python -P tool --flag`."""
    tool = tmp_path / "tool"
    tool.write_text(f"#!{sys.executable} -P\n")
    read = read_python_command(str(tool), ("tool", "--flag"))
    assert (read.executable, read.options, read.name, read.arguments) == (
        sys.executable,
        ("-P",),
        str(tool),
        ("--flag",),
    )


@pytest.mark.parametrize("words", [("python", "-"), ("python",), ("python", "-i", "s.py"), ("python", "-h")])
def test_what_cannot_be_forked_is_refused(words: tuple[str, ...]) -> None:
    """A program from standard input, or an option that makes no sense in a life: a sentence that names the way out."""
    with pytest.raises(UsageError, match="--lives fresh"):
        read_python_command("/usr/bin/python3", words)


def test_another_program_is_refused() -> None:
    """A command that is no Python can only be started fresh."""
    with pytest.raises(UsageError, match="`sh` is another program"):
        read_python_command("/bin/sh", ("sh", "-c", "true"))

"""What people write by hand: start, wait for a random time, SIGKILL, start again, until it has finished; compare.

A kill is verified when the process was ended by it and its lineage's final file has the bytes of an uninterrupted
run's. Where a kill struck nobody knows.
"""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import xxhash

from chaos.model import Record

from .children import end_tree, environment, run_bounded
from .records import Measurement, Script, Sizes, Status, Tool
from .script import FINAL, command_of

# Of an uninterrupted run's time: a little more than all of it, so that lineages also come to their ends.
_LONGEST_WAIT: Final = 1.2
_NOTE: Final = (
    "SIGKILL from outside after a random time, the lineage finished, final bytes compared. Nobody knows where it "
    "struck: {early} of {kills} kills came before a first step, and {states} different contents of the folder were left"
)


class _Lineage(Record, kw_only=True):
    """One lineage: its landed kills, those of them that came before a first step, the states they left."""

    kills: int
    early: int
    states: frozenset[str]
    is_equal: bool


class _Kills:
    """The kills that are still to be done, shared by all workers; none are left when the time is over."""

    def __init__(self, number: int, limit_s: float) -> None:
        """Begin with all of them."""
        self._left = number
        self._end = time.monotonic() + limit_s
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take one, if there is one left."""
        with self._lock:
            has_one = self._left > 0 and time.monotonic() < self._end
            self._left -= has_one
            return has_one

    def give_back(self) -> None:
        """Put one back that was not used."""
        with self._lock:
            self._left += 1

    def clear(self) -> None:
        """Leave none, so that all lineages come to their ends."""
        with self._lock:
            self._left = 0


class _Loop:
    """The workers' common part: the script, the uninterrupted run, the kills that are left."""

    def __init__(self, script: Script, sizes: Sizes, folder: Path) -> None:
        """Nothing is started yet."""
        self._script = script
        self._sizes = sizes
        self._folder = folder
        self._kills = _Kills(sizes.plain_kills, sizes.limit_s)
        self._reference_s = 0.0
        self._final = b""

    def learn(self) -> str:
        """Do the uninterrupted run; return what is wrong with it, or nothing."""
        out = self._folder / "reference"
        finished = run_bounded(command_of(self._script, str(out)), cwd=self._folder, limit_s=self._sizes.limit_s)
        if finished.status != 0:
            return finished.complaint
        self._reference_s = finished.elapsed_s
        self._final = (out / FINAL).read_bytes()
        return ""

    def run(self) -> tuple[_Lineage, ...]:
        """Run lineages side by side until all kills are done."""
        with ThreadPoolExecutor(self._sizes.jobs) as threads:
            try:
                workers = [threads.submit(self._work, worker) for worker in range(self._sizes.jobs)]
                return tuple(lineage for worker in workers for lineage in worker.result())
            finally:
                self._kills.clear()  # after an interrupt, the lineages under way come to their ends

    def _work(self, worker: int) -> list[_Lineage]:
        """Run one lineage after another."""
        rng = random.Random(f"{self._sizes.seed}:{worker}")
        lineages: list[_Lineage] = []
        while self._kills.take():
            self._kills.give_back()
            lineages.append(self._lineage(self._folder / f"{worker}-{len(lineages):04d}", rng))
        return lineages

    def _lineage(self, folder: Path, rng: random.Random) -> _Lineage:
        """Start and kill one lineage until it has finished, and compare."""
        folder.mkdir()
        out = folder / "out"
        kills = early = 0
        states: set[str] = set()
        while self._kills.take():
            if not self._is_killed(folder, rng.uniform(0, _LONGEST_WAIT * self._reference_s)):
                self._kills.give_back()
                break
            kills += 1
            early += "\nstep " not in (folder / "output.log").read_text(encoding="utf-8", errors="replace")
            states.add(_contents(out))
        else:
            self._is_killed(folder, self._sizes.limit_s)
        final = out / FINAL
        is_equal = final.is_file() and final.read_bytes() == self._final
        return _Lineage(kills=kills, early=early, states=frozenset(states), is_equal=is_equal)

    def _is_killed(self, folder: Path, wait_s: float) -> bool:
        """Run one life and kill it after `wait_s`; tell whether the kill landed, False where it ended before."""
        with (folder / "output.log").open("wb") as log:
            process = subprocess.Popen(
                command_of(self._script, str(folder / "out")),
                cwd=folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            end_tree(process)
        return process.returncode == -signal.SIGKILL


def measure_plain_loop(script: Script, sizes: Sizes, folder: Path) -> Measurement:
    """Do `plain_kills` random kills, `jobs` lineages side by side, below `folder`."""
    started = time.perf_counter()
    loop = _Loop(script, sizes, folder)
    if complaint := loop.learn():
        return Measurement(tool=Tool.PLAIN, status=Status.FAILED, note=complaint)
    lineages = loop.run()
    kills = sum(lineage.kills for lineage in lineages)
    states = frozenset().union(*(lineage.states for lineage in lineages))
    return Measurement(
        tool=Tool.PLAIN,
        status=Status.MEASURED,
        number=sum(lineage.kills for lineage in lineages if lineage.is_equal),
        elapsed_s=time.perf_counter() - started,
        workers=sizes.jobs,
        verdict="pass" if all(lineage.is_equal for lineage in lineages) else "fail",
        note=_NOTE.format(early=sum(lineage.early for lineage in lineages), kills=kills, states=len(states)),
    )


def _contents(out: Path) -> str:
    """Return a digest of the names and bytes in a folder."""
    digest = xxhash.xxh3_128()
    for path in sorted(out.rglob("*")):
        digest.update(f"{path.relative_to(out)}\0".encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()

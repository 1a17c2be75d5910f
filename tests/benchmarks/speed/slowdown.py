"""How much interception slows a target down: one script with and without it, by turns, by the script's own clock.

The plain runs have the same environment, but for the probe: what they are compared with is a target that nobody
watches. The supervisor runs in this process, as it does in a trial's.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos.checkpoints.process import Examiner
from chaos.errors import HarnessError
from chaos.lives.environment import life_environment
from chaos.lives.intercepted import run_intercepted
from chaos.lives.request import LifeRequest
from chaos.lives.starters import FreshStarter
from chaos.lives.temporary import temporary_folder
from chaos.model import FileState, LifeEnd, Record, TargetProfile
from chaos.roles import FileNames
from chaos.states.snapshot import Photographer

from .arithmetic import neighbours, ratios, spread
from .children import run_bounded
from .records import Script, Sizes, Slowdown
from .script import CHECKPOINT, FINAL, command_of, target_of

_TIMES: Final = re.compile(r"^times: whole ([\d.]+) training ([\d.]+) saving ([\d.]+)$", re.MULTILINE)
# What two references would teach of this script.
_PROFILE: Final = TargetProfile(temporaries=(f"{CHECKPOINT}.tmp", f"{FINAL}.tmp"), final_temporaries=(f"{FINAL}.tmp",))
_HASH_SEED: Final = 1


class _Times(Record, kw_only=True):
    """What a run says of itself, and how many operations were held in it."""

    whole_s: float
    training_s: float
    saving_s: float
    calls: int = 0

    @property
    def steps_s(self) -> float:
        """Return the seconds of the training that were not spent saving."""
        return self.training_s - self.saving_s


class _Round(Record, kw_only=True):
    """One run of each kind, one right after the other."""

    plain: _Times
    intercepted: _Times
    looked_at: _Times


class _Blind(Photographer):
    """Looks at nothing while the target runs, so that interception alone is measured."""

    def checkpoints(self) -> tuple[FileState, ...]:
        """Return nothing at an acknowledgement."""
        return ()


class _Runner:
    """Runs the script in new folders, which are removed again."""

    def __init__(self, script: Script, sizes: Sizes, folder: Path, examiner: Examiner) -> None:
        """Bind the parts."""
        self._script = script
        self._sizes = sizes
        self._folder = folder
        self._examiner = examiner

    def round(self, number: int) -> _Round:
        """Run each kind once; the order turns round each time, so that a drift of the machine cancels out."""
        runs = {"plain": self._plain, "intercepted": self._intercepted, "looked_at": self._looked_at}
        order = list(runs) if number % 2 == 0 else list(reversed(runs))
        return _Round(**{kind: runs[kind]() for kind in order})

    def _plain(self) -> _Times:
        """Run it with nothing around."""
        life = self._new_folder()
        with temporary_folder() as temporary:
            environment = life_environment(
                os.environ, {}, hash_seed=_HASH_SEED, scratch=life, temporary=temporary, ticks=None, probe_budget=0
            )
            command = command_of(self._script, str(life / "out"))
            finished = run_bounded(command, cwd=self._folder, limit_s=self._sizes.limit_s, env=environment)
        shutil.rmtree(life)
        if finished.status != 0:
            raise HarnessError(f"the larger script failed by itself: {finished.complaint}")
        return _times(finished.stdout, calls=0)

    def _intercepted(self) -> _Times:
        """Run it with its calls held and carried out, and nothing more."""
        return self._life(_Blind)

    def _looked_at(self) -> _Times:
        """Run it as a campaign does."""
        return self._life(Photographer)

    def _life(self, kind: type[Photographer]) -> _Times:
        """Run one intercepted life to its end; HarnessError where it does not get there."""
        life = self._new_folder()
        target, limit_s = target_of(self._script), self._sizes.limit_s
        request = LifeRequest(
            number=1,
            command=target.command,
            target=target,
            profile=_PROFILE,
            folder=str(life),
            out=str(life / "out"),
            hash_seed=_HASH_SEED,
            deadline_s=limit_s,
        )
        names = FileNames(target, _PROFILE)
        photographer = kind(life / "out", self._examiner, names.name, verify=(), deadline_s=limit_s, varying_leaves={})
        record = run_intercepted(request, photographer, FreshStarter()).record
        output = (life / "stdout.log").read_text(encoding="utf-8", errors="replace")
        shutil.rmtree(life)
        if record.end is not LifeEnd.EXITED or record.exit_status != 0:
            raise HarnessError(f"the larger script did not end well under interception: {record.output_tail[-200:]}")
        return _times(output, calls=record.num_operations)

    def _new_folder(self) -> Path:
        """Make the folder of one run; all have the same path, as its length is in what `torch.save` writes."""
        life = self._folder / "life"
        (life / "out").mkdir(parents=True)
        return life


def measure_slowdown(script: Script, sizes: Sizes, folder: Path) -> Slowdown:
    """Run `pairs` rounds; HarnessError where this machine cannot intercept, or the script fails."""
    with Examiner() as examiner:
        runner = _Runner(script, sizes, folder, examiner)
        return summary([runner.round(number) for number in range(sizes.pairs)])


def summary(rounds: Sequence[_Round]) -> Slowdown:
    """Put the rounds together; each ratio is of two runs of one round."""
    plain = [one.plain for one in rounds]
    held = [one.intercepted for one in rounds]
    training = [one.training_s for one in plain]
    return Slowdown(
        pairs=len(rounds),
        training=spread(ratios([one.training_s for one in held], training)),
        steps=spread(ratios([one.steps_s for one in held], [one.steps_s for one in plain])),
        saving=spread(ratios([one.saving_s for one in held], [one.saving_s for one in plain])),
        training_with_looks=spread(ratios([one.looked_at.training_s for one in rounds], training)),
        whole=spread(ratios([one.whole_s for one in held], [one.whole_s for one in plain])),
        saving_share=statistics.median(one.saving_s / one.training_s for one in plain),
        noise=statistics.median(neighbours(training)) if len(rounds) > 1 else 0.0,
        plain_training_s=statistics.median(training),
        calls=round(statistics.median(one.calls for one in held)),
    )


def _times(output: str, *, calls: int) -> _Times:
    """Read what a run says of itself; HarnessError where it says nothing."""
    found = _TIMES.search(output)
    if found is None:
        raise HarnessError("the larger script did not say how long it took")
    whole, training, saving = (float(text) for text in found.groups())
    return _Times(whole_s=whole, training_s=training, saving_s=saving, calls=calls)

"""What the probe costs: the script's own step time without it, with ticks alone, and with digests at several budgets.

Nothing is intercepted here, so that it is the probe alone. What a step takes is the processor's time, of one thread, in
the training without its saves; other processes disturb it little. The first step, and each after a save, are digested
in detail whatever the budget, and count.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from chaos.errors import HarnessError
from chaos.lives.environment import life_environment
from chaos.lives.temporary import temporary_folder
from chaos.lives.ticks import read_steps
from chaos.model import Record

from .arithmetic import ratios, spread
from .children import run_bounded
from .records import BudgetCost, ProbeCost, Script
from .script import command_of

# In percent of the step time; 5 is what a campaign allows by itself, 100 digests each step.
BUDGETS: Final = (0.0, 5.0, 100.0)
_TIMES: Final = re.compile(r"^processor: steps ([\d.]+)$", re.MULTILINE)
_HASH_SEED: Final = 1


class ProbedRun(Record, kw_only=True):
    """One run: the processor's seconds in all its steps, and their shares that were digested, whole or in part."""

    steps_s: float
    digested: float = 0.0
    recorded: float = 0.0


Round = Mapping[float | None, ProbedRun]


def measure_probing(scripts: Sequence[Script], rounds: int, folder: Path, limit_s: float) -> tuple[ProbeCost, ...]:
    """Run each script `rounds` times without the probe and at each budget; HarnessError where it fails by itself."""
    return tuple(
        cost(script, [_round(script, number, folder, limit_s) for number in range(rounds)]) for script in scripts
    )


def cost(script: Script, rounds: Sequence[Round]) -> ProbeCost:
    """Put the rounds of one script together; each ratio is of two runs of one round."""
    plain = [one[None].steps_s for one in rounds]
    return ProbeCost(
        script=script,
        rounds=len(rounds),
        plain_step_s=statistics.median(plain) / script.steps,
        budgets=tuple(
            BudgetCost(
                percent=budget,
                slowdown=spread(ratios([one[budget].steps_s for one in rounds], plain)),
                digested=statistics.median(one[budget].digested for one in rounds),
                recorded=statistics.median(one[budget].recorded for one in rounds),
            )
            for budget in BUDGETS
        ),
    )


def _round(script: Script, number: int, folder: Path, limit_s: float) -> Round:
    """Run each kind once; the order turns round each time, so that a drift of the machine cancels out."""
    kinds: list[float | None] = [None, *BUDGETS]
    order = kinds if number % 2 == 0 else kinds[::-1]
    return {budget: _run(script, budget, folder, limit_s) for budget in order}


def _run(script: Script, budget: float | None, folder: Path, limit_s: float) -> ProbedRun:
    """Run the script once, in a new folder, without the probe where there is no budget."""
    life, ticks = folder / "life", folder / "life" / "ticks.log"
    (life / "out").mkdir(parents=True)
    ticks.touch()
    with temporary_folder() as temporary:
        environment = life_environment(
            os.environ,
            {},
            hash_seed=_HASH_SEED,
            scratch=life,
            temporary=temporary,
            ticks=None if budget is None else ticks,
            probe_budget=budget or 0.0,
        )
        finished = run_bounded(command_of(script, str(life / "out")), cwd=folder, limit_s=limit_s, env=environment)
    found = _TIMES.search(finished.stdout)
    if finished.status != 0 or found is None:
        raise HarnessError(f"the script failed by itself: {finished.complaint}")
    records = read_steps(ticks, has_all_details=False)
    shutil.rmtree(life)
    return ProbedRun(
        steps_s=float(found[1]),
        digested=sum(record.is_digested for record in records) / script.steps,
        recorded=sum(not record.is_left_out for record in records) / script.steps,
    )

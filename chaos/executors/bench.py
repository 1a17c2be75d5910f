"""What a process that runs trials keeps from one to the next: the examiner, and warm templates."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from chaos.checkpoints.process import Examiner
from chaos.executors.cutting import run_cut
from chaos.executors.lineage import run_trial
from chaos.lives.starters import FreshStarter, Starter, WarmStarter, warm_plan
from chaos.model import Outcome, TrialSpec


class Bench:
    """Runs trials one after the other. Use as a context manager: leaving it ends the examiner and the templates."""

    def __init__(self) -> None:
        """Start nothing before it is needed."""
        self._stack = ExitStack()
        self._examiner = self._stack.enter_context(Examiner())
        self._starters: dict[str, Starter] = {"": FreshStarter()}

    def run(self, spec: TrialSpec, folder: Path) -> Outcome:
        """Run one trial below `folder` and return what it did."""
        if spec.trial.is_real_cut:
            return run_cut(spec, folder)
        starter = self._starters.get(spec.modules)
        if starter is None:
            starter = self._stack.enter_context(WarmStarter(warm_plan(Path(spec.modules))))
            self._starters[spec.modules] = starter
        return run_trial(spec, folder, examiner=self._examiner, starter=starter)

    def __enter__(self) -> Self:
        """Return the bench itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what was started."""
        self._stack.close()

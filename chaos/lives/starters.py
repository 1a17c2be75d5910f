"""How a life is started: fresh, as a process that executes the target, or forked from a warm template.

Both hand back the same handle on the life; nothing else of the harness knows the difference.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

import msgspec

from chaos.errors import HarnessError, UsageError
from chaos.lives.environment import find_executable
from chaos.lives.process import Keeper, LaunchPlan, LifeProcess, fresh_keeper
from chaos.lives.python_command import PythonCommand, read_python_command
from chaos.lives.temporary import make_temporary, remove_temporary
from chaos.model import Record, Target

MODULES_FILE: Final = "modules.json"
_TEMPLATE: Final = Path(__file__).with_name("template.py")
_WARM_UP_S: Final = 300.0
_FRESH: Final = "use --lives fresh"


class Starter(Protocol):
    """Starts lives, one at a time."""

    def start(self, plan: LaunchPlan) -> LifeProcess:
        """Start the target by `plan`; the life ends at the latest when the handle is closed."""


class FreshStarter:
    """Starts each life as a process of its own, as a restart does."""

    def start(self, plan: LaunchPlan) -> LifeProcess:
        """Start a guardian, and through it the target."""
        keeper = fresh_keeper()
        try:
            keeper.introduce(msgspec.to_builtins(plan))
        except BaseException:
            keeper.close()
            raise
        return LifeProcess(keeper)


class WarmPlan(Record, kw_only=True):
    """What the probe left of a reference: the installed modules that it had loaded at its end, in that order.

    `uses_cuda`: it had initialised CUDA, which forked lives cannot be trusted with.
    """

    modules: tuple[str, ...]
    uses_cuda: bool = False


class WarmStarter:
    """Forks lives from templates: one for each way in which the target's commands start Python (mostly one)."""

    def __init__(self, plan: WarmPlan) -> None:
        """Make no template before it is needed."""
        self._plan = plan
        self._templates: dict[tuple[str, ...], _Template] = {}

    def start(self, plan: LaunchPlan) -> LifeProcess:
        """Fork a life; the first one waits for the template's warm-up. UsageError where the command is no Python."""
        python = read_python_command(plan.executable, plan.command)
        key = (python.executable, *python.options, python.own_package, plan.cwd)
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = _Template(python, plan, self._plan)
        return template.fork(plan, python)

    def close(self) -> None:
        """End the templates."""
        for template in self._templates.values():
            template.close()
        self._templates.clear()

    def __enter__(self) -> Self:
        """Return the starter itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the templates."""
        self.close()


class _Template:
    """One warm template process."""

    def __init__(self, python: PythonCommand, plan: LaunchPlan, warm: WarmPlan) -> None:
        """Start it with the environment of a life, and wait until it is warm."""
        self._folder = make_temporary()
        modules = [name for name in warm.modules if name.partition(".")[0] != python.own_package]
        self._keeper = Keeper(
            (python.executable, *python.options, str(_TEMPLATE)), env=self._environment(plan), cwd=plan.cwd
        )
        try:
            self._keeper.introduce({"modules": modules, "folder": str(self._folder)})
            said = self._keeper.receive()[0] if self._keeper.has_message(_WARM_UP_S) else None
        except HarnessError as error:
            self.close()
            message = "the warm template ended while it imported what the target imports"
            raise HarnessError(message, hint=_FRESH) from error
        if said is not None and said.threads_started:
            self.close()
            names = ", ".join(said.threads_started)
            message = f"a package that the target imports starts a thread ({names}), which a forked life would not have"
            raise UsageError(message, hint=_FRESH)
        if said is None or said.threads_left > 0:
            self.close()
            what = "left threads that lives would wait for" if said else f"did not end within {_WARM_UP_S:.0f} s"
            message = f"the warm-up of the template {what}"
            raise HarnessError(message, hint=_FRESH)

    def _environment(self, plan: LaunchPlan) -> dict[str, str]:
        """Return a life's environment with folders of the template's own in the place of the life's."""
        own = str(self._folder)
        places = (str(Path(plan.stdout).parent), plan.temporary)
        environment = {}
        for name, value in plan.env.items():
            for place in places:
                value = value.replace(place, own) if place else value  # noqa: PLW2901 - one place after the other
            environment[name] = value
            if value.startswith(f"{own}/scratch/"):
                Path(value).mkdir(parents=True, exist_ok=True)
        (self._folder / "ticks.log").touch()
        return environment

    def fork(self, plan: LaunchPlan, python: PythonCommand) -> LifeProcess:
        """Fork one life."""
        self._keeper.tell(b"launch " + msgspec.json.encode({**msgspec.to_builtins(plan), "python": python}) + b"\n")
        return LifeProcess(self._keeper, is_kept=True)

    def close(self) -> None:
        """End the template, and a life that still runs."""
        self._keeper.close()
        remove_temporary(self._folder)


def require_warmable(target: Target) -> None:
    """Raise UsageError, before anything is run, where a command of the target is none that a template can fork."""
    environment = {**os.environ, **target.env}
    for command in (target.command, target.resume_command, target.no_save_command):
        if command:
            read_python_command(find_executable(command, environment, target.cwd or str(Path.cwd())), command)


def warm_plan(path: Path) -> WarmPlan:
    """Read what a reference had loaded at its end (`modules.json` in its life's folder); without it, nothing."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=WarmPlan)
    except FileNotFoundError:
        return WarmPlan(modules=())  # it ended without the interpreter's own end
    except (OSError, msgspec.MsgspecError) as error:
        message = f"{path} cannot be read: {error}"
        raise HarnessError(message, hint=f"remove the run, or free some space ({os.fspath(path.parent)})") from error

"""A scenario says what is run, where its files are, how it is killed and what is expected: TOML in, `Scenario` out.

Parsing is pure over text. Only `load_scenario` and its kin read files; finding programs is left to `chaos.programs`.
Whatever is wrong becomes a `UsageError` that names the file, the key and what was probably meant.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from chaos.complaints import Grammar, Place, did_you_mean, explain
from chaos.errors import HarnessError, UsageError
from chaos.model import SCHEMA, CheckName, Expect, FaultKind, Phase, Record, Target, Verdict
from chaos.programs import OUT, PYTHON, resolve_target
from chaos.roles import anywhere, compile_globs
from chaos.tables import (
    DEFAULT_PHASES,
    DEFAULTS,
    MAX_DEADLINE_S,
    MAX_KILLS,
    MAX_SEED,
    ExpectTable,
    FaultSpec,
    ScenarioTable,
    Schedule,
    TargetTable,
)

__all__ = [
    "BUNDLED_TARGET",
    "DEFAULT_DEADLINE_S",
    "DEFAULT_PHASES",
    "MAX_DEADLINE_S",
    "MAX_KILLS",
    "MAX_SEED",
    "Scenario",
    "Schedule",
    "dump_scenario",
    "json_schema",
    "load_scenario",
    "parse_scenario",
    "scenario_from_command",
    "shipped_scenario",
    "shipped_scenarios",
]

DEFAULT_SCENARIO = "durable"
DEFAULT_DEADLINE_S = DEFAULTS.deadline_s
MAX_SCENARIO_BYTES = 1 << 20
_WILDCARD = re.compile(r"\*\*|\*|\?|\[[!^]?\]?[^\]]*\]")
_ANY_NAME = "\ue000"  # a name that no glob spells out, so that only a wildcard matches it


class Scenario(Record, kw_only=True):
    """A scenario that was read and checked; globs of its target are relative to the output folder.

    `seed`, `schedule.kills` and `faults` are None or empty where it does not say; `has_deadline`: the target's is its.
    """

    schema: int = SCHEMA
    name: str
    claim: str = ""
    seed: int | None = None
    target: Target
    has_deadline: bool = False
    schedule: Schedule = Schedule()
    faults: tuple[FaultSpec, ...] = ()
    expect: Expect = Expect()

    @property
    def kinds(self) -> tuple[FaultKind, ...]:
        """Return the kinds of fault to inject, each once: `kill`, where nothing is said."""
        return tuple(dict.fromkeys(fault.kind for fault in self.faults)) or (FaultKind.KILL,)


BUNDLED_TARGET = TargetTable(
    command=(PYTHON, "-P", "-m", "trainer", "--out", OUT),
    no_save_command=(PYTHON, "-P", "-m", "trainer", "--out", OUT, "--save-every", "0"),
    checkpoints=("{out}/resume*.pt",),
    final=("{out}/weights.pt",),
    step=r"^step (\d+) ",
    saved=r"^saved step (\d+)",
)

_COMMAND_EXAMPLE = "Such as: --checkpoints '{out}/ckpt*.pt' --final '{out}/final.pt' -- python train.py {out}"
_GRAMMAR = Grammar(
    tables={
        "": ScenarioTable.__struct_fields__,
        "target": TargetTable.__struct_fields__,
        "schedule": Schedule.__struct_fields__,
        "schedule.phases": tuple(Phase),
        "fault": FaultSpec.__struct_fields__,
        "expect": ExpectTable.__struct_fields__,
        "expect.verdicts": tuple(FaultKind),
    },
    choices={
        "kind": tuple(FaultKind),
        "verdict": tuple(Verdict),
        "verdicts": (*FaultKind, *Verdict),
        "findings": tuple(CheckName),
        "allow": tuple(CheckName),
        "phases": tuple(Phase),
        "schema": (str(SCHEMA),),
    },
)


# --- reading ------------------------------------------------------------------------------------------


def load_scenario(name_or_path: str) -> Scenario:
    """Read a shipped scenario by its bare name or a TOML file by its path, and find its programs on this machine.

    Raises `UsageError` for a missing or wrong scenario and for a program that does not exist.
    """
    if name_or_path in shipped_scenarios():
        return _resolved(shipped_scenario(name_or_path))
    path = Path(name_or_path)
    return _resolved(parse_scenario(_read(path), source=name_or_path, name=path.stem))


def shipped_scenarios() -> tuple[str, ...]:
    """List the names of the scenarios that come with this package, the default one first."""
    names = sorted(path.stem for path in _shipped_folder().glob("*.toml"))
    return tuple(sorted(names, key=lambda name: name != DEFAULT_SCENARIO))


def shipped_scenario(name: str) -> Scenario:
    """Read one shipped scenario; a bare `python` in its commands is the interpreter that runs `chaos`."""
    scenario = parse_scenario(_read(_shipped_folder() / f"{name}.toml"), source=f"{name}.toml", name=name)
    target = scenario.target
    commands = {
        key: _with_placeholder(getattr(target, key)) for key in ("command", "resume_command", "no_save_command")
    }
    return msgspec.structs.replace(scenario, target=msgspec.structs.replace(target, **commands))


def scenario_from_command(
    command: Iterable[str],
    checkpoints: Iterable[str],
    final: Iterable[str],
    *,
    resume_command: Iterable[str] = (),
    ignore: Iterable[str] = (),
    step: str | None = None,
    saved: str | None = None,
    verify: Iterable[str] = (),
) -> Scenario:
    """Build the scenario of `chaos run --checkpoints GLOB --final GLOB -- CMD`, with the program found on this machine.

    Raises `UsageError` that names the option which is missing or wrong.
    """
    place = Place(source="command line", is_command_line=True)
    table = TargetTable(
        command=tuple(command),
        resume_command=tuple(resume_command),
        checkpoints=tuple(checkpoints),
        final=tuple(final),
        ignore=tuple(ignore),
        step=DEFAULTS.step if step is None else step,
        saved=DEFAULTS.saved if saved is None else saved,
        verify=tuple(verify),
    )
    for key in ("command", "checkpoints", "final"):
        if not getattr(table, key):
            place.fail(f"target.{key}", "is missing", _COMMAND_EXAMPLE)
    scripts = [Path(word).stem for word in table.command if word.endswith(".py")]
    name = scripts[0] if scripts else Path(table.command[0]).stem
    claim = "The command comes back by itself after every kill and ends with the same bits."
    return _resolved(Scenario(name=name, claim=claim, target=_target(table, place)))


def parse_scenario(text: str, *, source: str, name: str) -> Scenario:
    """Turn TOML into a checked scenario; programs stay as written; `source` and `name` are the file's.

    Raises `UsageError` with the key path, and with a suggestion where one is near.
    """
    place = Place(source=source)
    try:
        table = msgspec.convert(tomllib.loads(text), ScenarioTable)
    except tomllib.TOMLDecodeError as error:
        place.fail("", f"is not valid TOML: {error}")
    except RecursionError:
        place.fail("", "is not a scenario: its values are nested too deeply")
    except msgspec.ValidationError as error:
        explain(place, _GRAMMAR, str(error))
    _check_phases(table.schedule.phases, place)
    return Scenario(
        name=table.name or name,
        claim=table.claim,
        seed=table.seed,
        target=_target(table.target or BUNDLED_TARGET, place),
        has_deadline=table.target is not None and table.target.deadline_s is not None,
        schedule=table.schedule,
        faults=table.fault or (),
        expect=_expect(table.expect, place, {fault.kind for fault in table.fault or ()} or {FaultKind.KILL}),
    )


def dump_scenario(scenario: Scenario) -> str:
    """Write a scenario as TOML such that `parse_scenario` gives the same one back."""
    target: dict[str, Any] = msgspec.to_builtins(scenario.target)
    for key in ("checkpoints", "final"):
        target[key] = [f"{OUT}/{glob}" for glob in target[key]]
    if not scenario.has_deadline:
        del target["deadline_s"]
    document = msgspec.to_builtins(scenario)
    del document["has_deadline"]
    faults = document.pop("faults")
    document |= {"target": target} | ({"fault": faults} if faults else {})
    if document["seed"] is None:
        del document["seed"]
    if scenario.schedule.kills is None:
        del document["schedule"]["kills"]
    return tomli_w.dumps(document)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a scenario file."""
    schema = msgspec.json.schema(ScenarioTable, ref_template="#/$defs/{name}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _shipped_folder() -> Path:
    """Return the folder of the shipped scenarios: in the wheel, or in the clone of an editable installation."""
    package = Path(__file__).parent
    for folder in (package / "scenarios_shipped", package.parent / "scenarios"):
        if (folder / f"{DEFAULT_SCENARIO}.toml").is_file():
            return folder
    raise HarnessError("the shipped scenarios are missing from this installation", hint="Install ninelives again.")


def _with_placeholder(command: tuple[str, ...]) -> tuple[str, ...]:
    """Replace a bare `python` at the head of a shipped command by the placeholder."""
    return (PYTHON, *command[1:]) if command[:1] == ("python",) else command


def _read(path: Path) -> str:
    """Return the text of a scenario file, or raise a `UsageError` that says what there is instead."""
    try:
        if path.stat().st_size > MAX_SCENARIO_BYTES:
            raise UsageError(f"{path}: is too large for a scenario (over {MAX_SCENARIO_BYTES} bytes)")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        near = did_you_mean(path.stem, shipped_scenarios())
        listing = "Shipped scenarios: " + ", ".join(shipped_scenarios()) + "."
        raise UsageError(f"there is no scenario `{path}`", hint=f"{near} {listing}".strip()) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def _resolved(scenario: Scenario) -> Scenario:
    """Find the scenario's programs on this machine."""
    return msgspec.structs.replace(scenario, target=resolve_target(scenario.target))


# --- checking -----------------------------------------------------------------------------------------


def _check_phases(phases: Mapping[Phase, float], place: Place) -> None:
    """Require that the shares of the phases add up to 1, within rounding by hand."""
    total = math.fsum(phases.values())
    if not abs(total - 1) <= 0.01:  # noqa: PLR2004 - thirds are written as 0.33; `not <=` also refuses a NaN
        place.fail("schedule.phases", f"the shares add up to {total:g}, not to 1")


def _expect(table: ExpectTable, place: Place, kinds: Collection[FaultKind]) -> Expect:
    """Return what is expected; require that an expected failure says which finding, and that nothing else does."""
    for kind in table.verdicts:
        if kind not in kinds:
            hint = f'Add [[fault]] with kind = "{kind}", or leave it out.'
            place.fail("expect.verdicts", f"`{kind}` is none of the faults of this scenario", hint)
    verdict = table.verdict or table.gravest
    if not verdict.is_as_grave_as(table.gravest):
        place.fail("expect.verdict", f"`{verdict}` cannot come of `{table.gravest}` in `verdicts`", "Leave it out.")
    if verdict is Verdict.FAIL and not table.findings:
        place.fail("expect.findings", "is missing", "An expected failure names at least one finding.")
    if verdict is not Verdict.FAIL and (table.findings or table.allow):
        place.fail("expect.verdict", f"`{verdict}` expects no findings", 'Write `verdict = "fail"`.')
    return Expect(verdict=verdict, verdicts=table.verdicts, findings=table.findings, allow=table.allow)


def _target(table: TargetTable, place: Place) -> Target:
    """Check a target's table and return the target, its globs relative to the output folder."""
    target = Target(
        command=table.command,
        resume_command=table.resume_command or table.command,
        no_save_command=table.no_save_command,
        checkpoints=tuple(_relative_glob(glob, "target.checkpoints", place) for glob in table.checkpoints),
        final=tuple(_relative_glob(glob, "target.final", place) for glob in table.final),
        ignore=tuple(
            _glob(glob.removeprefix(f"{OUT}/").removesuffix("/"), "target.ignore", place) for glob in table.ignore
        ),
        step=_pattern(table.step, "target.step", place, has_number=True),
        saved=_pattern(table.saved, "target.saved", place, has_number=False),
        verify=table.verify,
        deadline_s=DEFAULT_DEADLINE_S if table.deadline_s is None else table.deadline_s,
        env=table.env,
        cwd=table.cwd,
    )
    _check_words(target, place)
    _check_overlaps(target, place)
    if target.verify and not any("{path}" in word for word in target.verify):
        place.fail("target.verify", "does not say where the checkpoint's path goes", "Write `{path}` there.")
    return target


def _check_words(target: Target, place: Place) -> None:
    """Require that each command can be passed to the system and names the output folder."""
    around = [*target.env.values(), target.cwd]
    for key in ("command", "resume_command", "no_save_command", "verify"):
        words: tuple[str, ...] = getattr(target, key)
        if any("\0" in word or not _is_text(word) for word in words):
            place.fail(f"target.{key}", "holds a character that no command can have")
        if words and not words[0]:
            place.fail(f"target.{key}", "begins with an empty word")
        if words and key != "verify" and not any(OUT in word for word in (*words, *around)):
            hint = f"Each trial writes into a folder of its own: pass `{OUT}` where the output folder is given."
            place.fail(
                f"target.{key}", f"does not say where `{OUT}` goes, neither in its words nor in env or cwd", hint
            )
    for name, value in target.env.items():
        if not name or "=" in name or "\0" in name + value or not _is_text(name + value):
            place.fail("target.env", f"`{name}` cannot be set in an environment")
    if "\0" in target.cwd or not _is_text(target.cwd):
        place.fail("target.cwd", "is not the name of a folder")


def _check_overlaps(target: Target, place: Place) -> None:
    """Require that no glob names only files that another key takes away from it: then none would be left to judge."""
    for key, globs, winner, others in (
        ("final", target.final, "checkpoints", target.checkpoints),
        ("final", target.final, "ignore", target.ignore),
        ("checkpoints", target.checkpoints, "ignore", target.ignore),
    ):
        for glob, other in itertools.product(globs, others):
            if _is_covered(glob, anywhere(other) if winner == "ignore" else other):
                is_file = not _WILDCARD.search(glob)
                files = f"`{OUT}/{glob}`" if is_file else f"every file that `{OUT}/{glob}` names"
                problem = f"{files} matches `{other}` of `{winner}` too, which goes first: none is left for `{key}`"
                hint = f"Narrow `{winner}`, or give the file a name that only `{key}` has."
                place.fail(f"target.{key}", problem, hint)


def _is_covered(glob: str, other: str) -> bool:
    """Tell whether each path that a glob names is one that another names too, judged by paths of odd names."""
    pattern = compile_globs((other,))
    paths = (_WILDCARD.sub(_ANY_NAME, glob.replace("**/", deep)) for deep in ("", f"{_ANY_NAME}/", "**/**/"))
    return glob == other or all(pattern.fullmatch(path) for path in paths)


def _is_text(word: str) -> bool:
    """Tell whether a word is Unicode text: undecodable bytes of a command line could not be recorded."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _relative_glob(glob: str, key: str, place: Place) -> str:
    """Return a glob without its `{out}/`, which it must have."""
    if not glob.startswith(f"{OUT}/"):
        place.fail(key, f"the glob `{glob}` does not begin with `{OUT}/`", f"Write `{OUT}/{glob.lstrip('./')}`.")
    return _glob(glob.removeprefix(f"{OUT}/").removesuffix("/"), key, place)


def _glob(glob: str, key: str, place: Place) -> str:
    """Return a relative glob if it can match something inside of the output folder."""
    parts = glob.split("/")
    if not glob or any(part in {"", ".", ".."} for part in parts):
        place.fail(key, f"the glob `{glob}` names no file inside of the output folder")
    if any("**" in part and part != "**" for part in parts):
        place.fail(key, f"in the glob `{glob}`, `**` does not stand alone between slashes")
    if any("[" in re.sub(r"\[[!^]?\]?[^\]]*\]", "", part) for part in parts):
        place.fail(key, f"in the glob `{glob}`, a `[` is not closed")
    if OUT in glob or "\0" in glob or not _is_text(glob):
        place.fail(key, f"the glob `{glob}` can match no file")
    return glob


def _pattern(pattern: str, key: str, place: Place, *, has_number: bool) -> str:
    """Return a regular expression that compiles, does not match every line and, where asked, captures a number."""
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        place.fail(key, f"`{pattern}` is not a regular expression: {error}")
    if compiled.search(""):
        place.fail(key, f"`{pattern}` matches an empty line, so it would match every line")
    if has_number and not compiled.groups:
        place.fail(key, f"`{pattern}` captures no number", r"Put the step's number in a group, such as `step (\d+)`.")
    return pattern

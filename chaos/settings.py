"""Settings of a campaign: the command line, then `CHAOS_*`, then the scenario, then `[tool.chaos]`, then the default.

Each source becomes one `SettingsLayer`; the first that says something wins, and `Settings` keeps which one it was.
"""

from __future__ import annotations

import os
import re
import secrets
import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec

from chaos.complaints import Grammar, Place, explain
from chaos.errors import UsageError
from chaos.model import FaultKind, Record
from chaos.scenario import DEFAULT_DEADLINE_S, MAX_DEADLINE_S, MAX_KILLS, MAX_SEED, Scenario

DEFAULT_KILLS = 20
DEFAULT_PROBE_BUDGET = 5.0
MAX_JOBS = 256
MAX_DEFAULT_JOBS = 8
MAX_BUDGET_S = 30 * 86_400.0
SEED_BITS = 32

_DURATION = re.compile(r"(?:(\d{1,9}(?:\.\d+)?)h)?(?:(\d{1,9}(?:\.\d+)?)m)?(?:(\d{1,9}(?:\.\d+)?)s?)?", re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,18}(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)


class LivesKind(StrEnum):
    """How lives are started: `fresh` starts the interpreter anew for each, `warm` forks them from a template."""

    FRESH = "fresh"
    WARM = "warm"


class Source(StrEnum):
    """Where a setting's value came from."""

    COMMAND_LINE = "command line"
    ENVIRONMENT = "environment"
    SCENARIO = "scenario"
    PYPROJECT = "pyproject.toml"
    DEFAULT = "default"


class SettingsLayer(Record, kw_only=True):
    """What one source says; None where it says nothing. `budget_s` is in seconds, `max_bytes` in bytes."""

    kills: Annotated[int, msgspec.Meta(ge=1, le=MAX_KILLS)] | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEED)] | None = None
    jobs: Annotated[int, msgspec.Meta(ge=1, le=MAX_JOBS)] | None = None
    budget_s: Annotated[float, msgspec.Meta(gt=0, le=MAX_BUDGET_S)] | None = None
    max_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None
    strict: bool | None = None
    keep: bool | None = None
    deadline_s: Annotated[float, msgspec.Meta(gt=0, le=MAX_DEADLINE_S)] | None = None
    lives: LivesKind | None = None
    no_intercept: bool | None = None
    faults: Annotated[tuple[FaultKind, ...], msgspec.Meta(min_length=1)] | None = None
    without_fsync: bool | None = None
    stop_early: bool | None = None
    fingerprints: bool | None = None
    probe_budget: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None


class Settings(Record, kw_only=True):
    """The settings in force. `budget_s` and `max_bytes` are None where there is no bound.

    `kills` is the number for each kind of `faults`. `keep` keeps the output folders of trials that passed too;
    `deadline_s` bounds each life; `without_fsync` answers the target's fsync without carrying it out; `stop_early` ends
    a recovery that goes the way of one from the same files that ran to its end; `fingerprints` runs a lineage that
    diverged unseen again, with parts of its checkpoint reset; `probe_budget` is the share of step time, in percent,
    that the probe's digests may take; `sources` maps each setting's name to where its value came from.
    """

    kills: int
    seed: int
    jobs: int
    budget_s: float | None
    max_bytes: int | None
    strict: bool
    keep: bool
    deadline_s: float
    lives: LivesKind
    no_intercept: bool
    faults: tuple[FaultKind, ...]
    without_fsync: bool
    stop_early: bool
    fingerprints: bool
    probe_budget: float
    sources: dict[str, Source]


_WRITTEN_NAMES = {"budget_s": "budget"}  # with a unit in the value, not in the name
_KEYS = tuple(_WRITTEN_NAMES.get(field, field) for field in SettingsLayer.__struct_fields__)
_GRAMMAR = Grammar(tables={"": _KEYS}, choices={"lives": tuple(LivesKind), "faults": tuple(FaultKind)})


def resolve_settings(
    command_line: SettingsLayer,
    scenario: Scenario | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    draw_seed: Callable[[], int] = lambda: secrets.randbits(SEED_BITS),
    default_lives: LivesKind = LivesKind.FRESH,
) -> Settings:
    """Merge all sources; `environment` and `folder` (of pyproject.toml) are this process's unless given.

    Raises `UsageError` for a wrong value of a `CHAOS_*` variable or in [tool.chaos], and for an unknown key there.
    """
    layers = {
        Source.COMMAND_LINE: command_line,
        Source.ENVIRONMENT: layer_from_environment(os.environ if environment is None else environment),
        Source.SCENARIO: layer_from_scenario(scenario) if scenario else SettingsLayer(),
        Source.PYPROJECT: _layer_from_folder(Path.cwd() if folder is None else folder),
    }
    return merge(layers, draw_seed=draw_seed, default_lives=default_lives)


def merge(
    layers: Mapping[Source, SettingsLayer],
    *,
    draw_seed: Callable[[], int],
    default_lives: LivesKind = LivesKind.FRESH,
) -> Settings:
    """Take each setting from the first of `layers` that has it, else the default; pure but for `draw_seed`."""
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for field in SettingsLayer.__struct_fields__:
        said = ((source, getattr(layer, field)) for source, layer in layers.items())
        sources[field], values[field] = next((pair for pair in said if pair[1] is not None), (Source.DEFAULT, None))
    defaults: dict[str, Callable[[], Any]] = {
        "kills": lambda: DEFAULT_KILLS,
        "seed": draw_seed,
        "jobs": default_jobs,
        "strict": lambda: False,
        "keep": lambda: False,
        "deadline_s": lambda: DEFAULT_DEADLINE_S,
        "lives": lambda: default_lives,
        "no_intercept": lambda: False,
        "faults": lambda: (FaultKind.KILL,),
        "without_fsync": lambda: False,
        "stop_early": lambda: False,
        "fingerprints": lambda: True,
        "probe_budget": lambda: DEFAULT_PROBE_BUDGET,
    }
    values |= {field: default() for field, default in defaults.items() if values[field] is None}
    values["faults"] = tuple(dict.fromkeys(values["faults"]))
    return Settings(sources=sources, **values)


def default_jobs() -> int:
    """Return how many trials run at once unless told: one for each core that this process may use, at most 8."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MAX_DEFAULT_JOBS)


# --- one source each ----------------------------------------------------------------------------------


def layer_from_command_line(**options: float | bool | str | None) -> SettingsLayer:
    """Build the layer of the command line from options as typed, such as `budget="10m", kills=20`; None says nothing.

    Raises `UsageError` that names the option.
    """
    return _layer(Place(source="command line", is_command_line=True), options)


def layer_from_environment(environment: Mapping[str, str]) -> SettingsLayer:
    """Read `CHAOS_KILLS`, `CHAOS_BUDGET` and so on; an empty value says nothing, other variables are not ours."""
    values = {key: environment.get(f"CHAOS_{key.upper()}", "").strip() for key in _KEYS}
    said: dict[str, Any] = {}
    for key, text in values.items():
        if text:
            place = Place(source=f"CHAOS_{key.upper()}={text}")
            layer = msgspec.structs.asdict(_layer(place, {key: text}, is_text=True))
            found = {field: value for field, value in layer.items() if value is not None}
            said |= found or place.fail(key, "is no value")
    return SettingsLayer(**said)


def layer_from_scenario(scenario: Scenario) -> SettingsLayer:
    """Take what a scenario itself says about settings."""
    return SettingsLayer(
        kills=scenario.schedule.kills,
        seed=scenario.seed,
        deadline_s=scenario.target.deadline_s if scenario.has_deadline else None,
        faults=tuple(fault.kind for fault in scenario.faults) or None,
    )


def layer_from_pyproject(text: str, *, source: str) -> SettingsLayer:
    """Read [tool.chaos] of a pyproject.toml; without one it says nothing."""
    place = Place(source=source)
    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        place.fail("", f"is not valid TOML: {error}")
    table = tool.get("chaos", {}) if isinstance(tool, dict) else {}
    place = Place(source=f"{source} [tool.chaos]")
    if not isinstance(table, dict):
        place.fail("", "is not a table")
    return _layer(place, table)


def _layer_from_folder(folder: Path) -> SettingsLayer:
    """Read [tool.chaos] of the pyproject.toml in `folder`, if it is there."""
    path = folder / "pyproject.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return SettingsLayer()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path.name}: cannot be read: {error}") from error
    return layer_from_pyproject(text, source=path.name)


def _layer(place: Place, written: Mapping[str, Any], *, is_text: bool = False) -> SettingsLayer:
    """Check values as a user wrote them (all text with `is_text`) and return them as a layer."""
    values = dict(written)
    if isinstance(budget := values.pop("budget", None), str):
        budget = parse_duration(budget, place=place)
    if isinstance(size := values.get("max_bytes"), str):
        values["max_bytes"] = parse_size(size, place=place)
    if isinstance(faults := values.get("faults"), str):
        values["faults"] = [word.strip() for word in faults.split(",")]
    if "budget_s" in values:  # the field's name is not a key that a user may write
        place.fail("budget_s", "is not a known key", "Did you mean `budget`?")
    try:
        return msgspec.convert({**values, "budget_s": budget}, SettingsLayer, strict=not is_text)
    except msgspec.ValidationError as error:
        explain(place, _GRAMMAR, str(error).replace("budget_s", "budget"))


def parse_duration(text: str, *, place: Place, key: str = "budget") -> float:
    """Return the seconds of `90s`, `10m`, `1h30m` or a bare number of seconds; raises `UsageError` otherwise."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        place.fail(key, f"`{text}` is no length of time", "Write it like 90s, 10m or 1h30m.")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def parse_size(text: str, *, place: Place, key: str = "max_bytes") -> int:
    """Return the bytes of `2GB`, `500 MiB` or a bare number of bytes; raises `UsageError` otherwise."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        place.fail(key, f"`{text}` is no number of bytes", "Write it like 500MB, 2GB or 2GiB.")
    amount, prefix, binary = match.groups()
    power = " KMGT".index(prefix.upper() or " ")
    return int(float(amount) * (1024 if binary else 1000) ** power)

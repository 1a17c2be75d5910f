"""Settings: who wins, where each value came from, and what is refused."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.complaints import Place
from chaos.errors import UsageError
from chaos.model import FaultKind
from chaos.scenario import parse_scenario
from chaos.settings import (
    LivesKind,
    SettingsLayer,
    Source,
    layer_from_command_line,
    layer_from_environment,
    layer_from_pyproject,
    layer_from_scenario,
    merge,
    parse_duration,
    parse_size,
    resolve_settings,
)

ORDER = (Source.COMMAND_LINE, Source.ENVIRONMENT, Source.SCENARIO, Source.PYPROJECT)
PLACE = Place(source="here")


@pytest.mark.parametrize("given_by", [some for n in range(5) for some in combinations(ORDER, n)])
def test_first_source_that_says_something_wins(given_by: tuple[Source, ...], tmp_path: Path) -> None:
    """Command line, environment, scenario, pyproject.toml, default: the first that names the kills decides."""
    values = {source: 31 + position for position, source in enumerate(ORDER)}
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.chaos]\nkills = {values[Source.PYPROJECT]}\n" if Source.PYPROJECT in given_by else "", encoding="utf-8"
    )
    kills = f"[schedule]\nkills = {values[Source.SCENARIO]}\n" if Source.SCENARIO in given_by else ""
    settings = resolve_settings(
        layer_from_command_line(kills=values[Source.COMMAND_LINE] if Source.COMMAND_LINE in given_by else None),
        parse_scenario(f"schema = 1\n{kills}", source="s", name="s"),
        environment={"CHAOS_KILLS": str(values[Source.ENVIRONMENT])} if Source.ENVIRONMENT in given_by else {},
        folder=tmp_path,
    )
    winner = given_by[0] if given_by else Source.DEFAULT
    assert settings.sources["kills"] == winner
    assert settings.kills == values.get(winner, 20)


def test_false_on_the_command_line_is_an_answer() -> None:
    """A flag that is switched off explicitly beats one that is on further down."""
    layers = {Source.COMMAND_LINE: SettingsLayer(strict=False), Source.ENVIRONMENT: SettingsLayer(strict=True)}
    assert merge(layers, draw_seed=lambda: 1).strict is False


def test_recoveries_run_to_their_end_unless_told_otherwise() -> None:
    """Early stop is off and fingerprints are on, until a variable or an option says so."""
    plain = merge({}, draw_seed=lambda: 1)
    assert (plain.stop_early, plain.fingerprints) == (False, True)
    told = layer_from_environment({"CHAOS_STOP_EARLY": "1", "CHAOS_FINGERPRINTS": "false"})
    settings = merge({Source.ENVIRONMENT: told}, draw_seed=lambda: 1)
    assert (settings.stop_early, settings.fingerprints) == (True, False)


def test_defaults_are_those_of_the_design() -> None:
    """Without any source: 20 kills, a drawn seed, ten minutes a life, fresh lives, interception on, no bounds."""
    settings = merge({}, draw_seed=lambda: 77)
    assert (settings.kills, settings.seed, settings.deadline_s, settings.lives) == (20, 77, 600.0, LivesKind.FRESH)
    assert (settings.strict, settings.keep, settings.no_intercept) == (False, False, False)
    assert (settings.budget_s, settings.max_bytes) == (None, None)
    assert settings.jobs >= 1
    assert set(settings.sources.values()) == {Source.DEFAULT}


def test_seed_is_drawn_only_where_none_is_given() -> None:
    """A given seed is taken as it is, and no other is drawn."""

    def draw() -> int:
        raise AssertionError

    assert merge({Source.SCENARIO: SettingsLayer(seed=0)}, draw_seed=draw).seed == 0


def test_scenario_gives_only_what_it_sets() -> None:
    """A scenario's deadline counts only where it is written, even when it equals the default."""
    text = 'schema = 1\nseed = 3\n[target]\ncommand = ["{out}"]\ncheckpoints = ["{out}/a"]\nfinal = ["{out}/b"]\n'
    without = layer_from_scenario(parse_scenario(text, source="s", name="s"))
    with_one = layer_from_scenario(parse_scenario(text + "deadline_s = 600", source="s", name="s"))
    assert without == SettingsLayer(seed=3)
    assert with_one == SettingsLayer(seed=3, deadline_s=600.0)


def test_faults_come_from_the_first_source_that_says_any() -> None:
    """Command line, then environment, then scenario, then [tool.chaos], then the kill; each kind once, in order."""
    text = 'schema = 1\n[target]\ncommand = ["{out}"]\ncheckpoints = ["{out}/a"]\nfinal = ["{out}/b"]\n'
    scenario = parse_scenario(text + "[[fault]]\nkind = 'io_error'\n", source="s", name="s")
    layers = {
        Source.COMMAND_LINE: layer_from_command_line(faults="bit_flip,kill,bit_flip"),
        Source.ENVIRONMENT: layer_from_environment({"CHAOS_FAULTS": "disk_full"}),
        Source.SCENARIO: layer_from_scenario(scenario),
        Source.PYPROJECT: layer_from_pyproject('[tool.chaos]\nfaults = ["power_loss"]', source="p"),
    }
    expected = [
        (FaultKind.BIT_FLIP, FaultKind.KILL),
        (FaultKind.DISK_FULL,),
        (FaultKind.IO_ERROR,),
        (FaultKind.POWER_LOSS,),
        (FaultKind.KILL,),
    ]
    for faults in expected:
        assert merge(layers, draw_seed=lambda: 1).faults == faults
        if layers:
            del layers[next(iter(layers))]
    plain = layer_from_scenario(parse_scenario(text, source="s", name="s"))
    assert merge({Source.SCENARIO: plain}, draw_seed=lambda: 1).sources["faults"] is Source.DEFAULT


@pytest.mark.parametrize(
    ("written", "said"),
    [("kill,powr_loss", "Did you mean `power_loss`?"), ("kill,", "is not known"), ("", "is not known")],
)
def test_an_unknown_fault_is_named(written: str, said: str) -> None:
    """What is no kind of fault is refused, with the nearest one and all that there are."""
    with pytest.raises(UsageError) as caught:
        layer_from_command_line(faults=written)
    assert str(caught.value).startswith("`--faults")
    assert said in str(caught.value)
    assert "Known: kill, torn_write" in str(caught.value)


def test_every_setting_can_come_from_the_environment() -> None:
    """Each `CHAOS_*` variable sets its setting; an empty one and an unknown one say nothing."""
    layer = layer_from_environment({
        "CHAOS_KILLS": "7", "CHAOS_SEED": "8", "CHAOS_JOBS": "3", "CHAOS_BUDGET": "10m", "CHAOS_MAX_BYTES": "2GB",
        "CHAOS_STRICT": "1", "CHAOS_KEEP": "true", "CHAOS_DEADLINE_S": "1.5", "CHAOS_LIVES": "fresh",
        "CHAOS_NO_INTERCEPT": "0", "CHAOS_FAULTS": "kill, power_loss", "CHAOS_UNKNOWN": "x",
    })  # fmt: skip
    assert layer == SettingsLayer(
        kills=7,
        seed=8,
        jobs=3,
        budget_s=600.0,
        max_bytes=2_000_000_000,
        strict=True,
        keep=True,
        deadline_s=1.5,
        lives=LivesKind.FRESH,
        no_intercept=False,
        faults=(FaultKind.KILL, FaultKind.POWER_LOSS),
    )
    assert layer_from_environment({"CHAOS_KILLS": " ", "CHAOS_SEED": ""}) == SettingsLayer()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("CHAOS_KILLS", "many", "expected a whole number"),
        ("CHAOS_KILLS", "0", ">= 1"),
        ("CHAOS_KILLS", "null", "is no value"),
        ("CHAOS_SEED", "-1", ">= 0"),
        ("CHAOS_JOBS", "100000", "<= 256"),
        ("CHAOS_STRICT", "maybe", "expected true or false"),
        ("CHAOS_BUDGET", "10x", "Write it like 90s, 10m or 1h30m."),
        ("CHAOS_BUDGET", "0s", "> 0"),
        ("CHAOS_MAX_BYTES", "lots", "Write it like 500MB, 2GB or 2GiB."),
        ("CHAOS_MAX_BYTES", "0", ">= 1"),
        ("CHAOS_DEADLINE_S", "nan", "> 0"),
        ("CHAOS_LIVES", "tepid", "Known: fresh, warm."),
    ],
)
def test_wrong_variable_is_refused_by_name(name: str, text: str, said: str) -> None:
    """A wrong `CHAOS_*` value is named together with what it should be."""
    with pytest.raises(UsageError) as caught:
        layer_from_environment({name: text})
    assert str(caught.value).startswith(f"{name}={text}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[tool.chaos]\nkils = 3", "`kils`: is not a known key\n  Did you mean `kills`?"),
        ("[tool.chaos]\nkills = '3'", "`kills`: expected a whole number, got a text"),
        ("[tool.chaos]\nbudget_s = 3", "Did you mean `budget`?"),
        ("[tool.chaos]\nbudget = true", "`budget`: expected a number, got true or false"),
        ("[tool.chaos]\nstrict = 1", "`strict`: expected true or false, got a whole number"),
        ("[tool]\nchaos = 3", "is not a table"),
        ("[tool.chaos\n", "is not valid TOML"),
    ],
)
def test_wrong_table_in_pyproject_is_refused(table: str, said: str) -> None:
    """A wrong key or value in [tool.chaos] is named."""
    with pytest.raises(UsageError) as caught:
        layer_from_pyproject(table, source="pyproject.toml")
    assert str(caught.value).startswith("pyproject.toml")
    assert said in str(caught.value)


def test_pyproject_is_read_with_units_or_numbers() -> None:
    """A budget and a size may be written with a unit or as a number; other tools' tables are left alone."""
    written = layer_from_pyproject("[tool.chaos]\nbudget = '1h30m'\nmax_bytes = '2KiB'", source="p")
    plain = layer_from_pyproject("[tool.chaos]\nbudget = 5400\nmax_bytes = 2048\n[tool.x]\ny = 1", source="p")
    assert written == plain == SettingsLayer(budget_s=5400.0, max_bytes=2048)
    assert layer_from_pyproject("[tool.other]\nkils = 3", source="p") == SettingsLayer()


def test_missing_pyproject_says_nothing_and_an_unreadable_one_is_refused(tmp_path: Path) -> None:
    """Without a pyproject.toml the defaults hold; one that is no text is refused."""
    assert resolve_settings(SettingsLayer(), environment={}, folder=tmp_path).kills == 20
    (tmp_path / "pyproject.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"pyproject\.toml"):
        resolve_settings(SettingsLayer(), environment={}, folder=tmp_path)


def test_wrong_option_is_refused_by_its_spelling() -> None:
    """A wrong value on the command line is reported as its option."""
    with pytest.raises(UsageError, match="`--max-bytes`"):
        layer_from_command_line(max_bytes="x")
    with pytest.raises(UsageError, match="`--kills`"):
        layer_from_command_line(kills=0)


@given(st.integers(0, 999), st.integers(0, 59), st.integers(0, 59))
def test_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int) -> None:
    """Hours, minutes and seconds add up; a bare number is seconds."""
    total = hours * 3600 + minutes * 60 + seconds
    assert parse_duration(f"{hours}h{minutes}m{seconds}s", place=PLACE) == total
    assert parse_duration(str(total), place=PLACE) == total


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("1B", 1), ("1.5kB", 1500), ("2 GiB", 2 << 30), ("3m", 3_000_000), ("1T", 10**12)],
)
def test_size_knows_decimal_and_binary_units(text: str, size: int) -> None:
    """GB counts in thousands and GiB in 1024s, in either case of letters."""
    assert parse_size(text, place=PLACE) == size


@pytest.mark.parametrize("text", ["", "s", "m10", "1s1h", "-1", "1e3", "٣x", "9" * 40])
def test_odd_length_of_time_is_refused(text: str) -> None:
    """What is no length of time is refused with an example."""
    with pytest.raises(UsageError, match="no length of time"):
        parse_duration(text, place=PLACE)


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_is_refused(text: str) -> None:
    """No text makes the parsers fail in another way than by a refusal."""
    for parser in (parse_duration, parse_size):
        try:
            assert parser(text, place=PLACE) >= 0
        except UsageError:
            continue

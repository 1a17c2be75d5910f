"""Scenarios: TOML in, a checked record out, and for everything wrong a sentence that says where and what instead."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from chaos.errors import UsageError
from chaos.model import CheckName, Expect, FaultKind, Phase, Target, Verdict
from chaos.programs import OUT, resolve_command
from chaos.scenario import (
    BUNDLED_TARGET,
    MAX_KILLS,
    MAX_SEED,
    Scenario,
    Schedule,
    dump_scenario,
    json_schema,
    load_scenario,
    parse_scenario,
    scenario_from_command,
    shipped_scenario,
    shipped_scenarios,
)

TARGET = """
schema = 1
[target]
command = ["python", "train.py", "{out}"]
checkpoints = ["{out}/ckpt*.pt"]
final = ["{out}/final.pt"]
"""


def parse(text: str) -> Scenario:
    """Parse a scenario that is called mine.toml."""
    return parse_scenario(text, source="mine.toml", name="mine")


def refusal(text: str) -> str:
    """Return the whole message with which a scenario is refused."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    return str(caught.value)


def is_read_or_refused(text: str) -> bool:
    """Tell whether a text is read, or refused by the file's name; any other error passes through."""
    try:
        return parse(text).name != ""
    except UsageError as error:
        return str(error).startswith("mine.toml")


# --- what is read -------------------------------------------------------------------------------------


def test_target_is_read_with_globs_relative_to_the_output_folder() -> None:
    """A minimal scenario gives the target its files, relative to the output folder, and the defaults."""
    scenario = parse(TARGET)
    command = ("python", "train.py", "{out}")
    expected = Target(command=command, resume_command=command, checkpoints=("ckpt*.pt",), final=("final.pt",))
    assert scenario == Scenario(name="mine", target=expected)


def test_without_a_target_the_bundled_trainer_is_meant() -> None:
    """A scenario that names no target tests the bundled trainer."""
    assert parse("schema = 1").target.command == BUNDLED_TARGET.command


def test_what_a_scenario_leaves_open_stays_open() -> None:
    """Kills, seed and deadline are unset unless the scenario sets them, even to the default's value."""
    open_one = parse(TARGET)
    set_one = parse(TARGET + "deadline_s = 600\n[schedule]\nkills = 20\n")
    assert (open_one.schedule.kills, open_one.seed, open_one.has_deadline) == (None, None, False)
    assert (set_one.schedule.kills, set_one.has_deadline) == (20, True)


def test_the_rest_of_a_scenario_is_read() -> None:
    """Schedule, faults, expectation and seed arrive as records."""
    scenario = parse(
        'schema = 1\nclaim = "c"\nseed = 7\n[schedule]\nphases = { save = 0.67, step = 0.33 }\n'
        '[[fault]]\nkind = "kill"\n[expect]\nverdict = "fail"\nfindings = ["lost_work"]\nallow = ["leaked_files"]\n'
    )
    assert scenario.seed == 7
    assert scenario.claim == "c"
    assert scenario.schedule.phases == {Phase.SAVE: 0.67, Phase.STEP: 0.33}
    expected = Expect(verdict=Verdict.FAIL, findings=(CheckName.LOST_WORK,), allow=(CheckName.LEAKED_FILES,))
    assert scenario.expect == expected


def test_output_folder_may_be_named_in_the_environment_or_the_working_folder() -> None:
    """`{out}` in env or cwd is as good as in the command."""
    bare = TARGET.replace(', "{out}"]', "]")
    assert parse(bare + 'env = { OUT = "{out}" }').target.env == {"OUT": "{out}"}
    assert parse(bare + 'cwd = "{out}"').target.cwd == "{out}"


@pytest.mark.parametrize("glob", ["a[12].pt", "[[]x", "[]]x", "[!a]x", "**/a", "a/**", "shard-?.pt", "global_step*"])
def test_glob_of_any_kind_is_kept_as_written(glob: str) -> None:
    """Sets, folders at any depth and single characters may stand in a glob; a slash at its end is dropped."""
    assert parse(TARGET.replace("ckpt*.pt", glob)).target.checkpoints == (glob,)
    assert parse(TARGET.replace("ckpt*.pt", f"{glob}/")).target.checkpoints == (glob,)


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("addition", "key", "said"),
    [
        ("chekpoints = 1", "target.chekpoints", "Did you mean `checkpoints`?"),
        ("kills = 3", "target.kills", "It belongs in [schedule]."),
        ("step = '('", "target.step", "is not a regular expression"),
        ("step = 'step'", "target.step", "captures no number"),
        ("saved = 's*'", "target.saved", "matches an empty line"),
        ("deadline_s = -1", "target.deadline_s", "expected a number > 0.0"),
        ("deadline_s = nan", "target.deadline_s", "expected a number > 0.0"),
        ("deadline_s = 'x'", "target.deadline_s", "expected a number, got a text"),
        ("env = { A = 1 }", "target.env", "expected a text, got a whole number"),
        ("env = { 'A=B' = 'c' }", "target.env", "`A=B` cannot be set"),
        ("verify = ['check']", "target.verify", "Write `{path}` there."),
        ("verify = ['']", "target.verify", "begins with an empty word"),
        ("resume_command = ['a']", "target.resume_command", "does not say where `{out}` goes"),
        ("no_save_command = ['a']", "target.no_save_command", "does not say where `{out}` goes"),
        ('resume_command = ["{out}\\u0000"]', "target.resume_command", "a character that no command can have"),
        ('cwd = "a\\u0000"', "target.cwd", "is not the name of a folder"),
        ("ignore = ['../x']", "target.ignore", "names no file inside of the output folder"),
        ("[schedule]\nkills = 0", "schedule.kills", "expected a whole number >= 1"),
        ("[schedule]\nkills = 'x'", "schedule.kills", "expected a whole number, got a text"),
        ("[schedule]\nphases = { sav = 1 }", "schedule.phases", "Did you mean `save`?"),
        ("[schedule]\nphases = { save = 0.5 }", "schedule.phases", "the shares add up to 0.5, not to 1"),
        ("[schedule]\nphases = { save = nan }", "schedule.phases", "expected a number"),
        ("[[fault]]\nkind = 'kil'", "fault[0].kind", "Did you mean `kill`? Known: kill, torn_write, power_loss"),
        ("[[fault]]\nkind = 'sigterm'", "fault[0].kind", "Known: kill, torn_write, power_loss"),
        ("[[fault]]\nknd = 'kill'", "fault.knd", "Did you mean `kind`?"),
        ("[expect]\nverdict = 'fail'", "expect.findings", "is missing"),
        ("[expect]\nfindings = ['lost_work']", "expect.verdict", 'Write `verdict = "fail"`.'),
        ("[expect]\nverdict = 'fail'\nfindings = ['lost_wrk']", "expect.findings[0]", "Did you mean `lost_work`?"),
        ("[expect]\nverdict = 'broken'", "expect.verdict", "Known: pass, fail, inconclusive."),
        ("[expect]\nverdicts = { power_los = 'fail' }", "expect.verdicts", "Did you mean `power_loss`?"),
        ("[expect]\nverdicts = { kill = 'pas' }", "expect.verdicts", "Did you mean `pass`?"),
        ("[expect]\nverdicts = { bit_flip = 'pass' }", "expect.verdicts", 'Add [[fault]] with kind = "bit_flip"'),
        ("[expect]\nverdicts = { kill = 'fail' }", "expect.findings", "is missing"),
        ("[expect]\nverdict = 'pass'\nverdicts = { kill = 'fail' }", "expect.verdict", "Leave it out."),
        ("[vary]\nhash_seed = true", "vary", "Known: schema, name, claim"),
    ],
)
def test_wrong_key_or_value_is_named_with_what_was_meant(addition: str, key: str, said: str) -> None:
    """Each mistake is reported with the file, the key path and a way out."""
    message = refusal(TARGET + addition)
    assert message.startswith(f"mine.toml: `{key}`")
    assert said in message


@pytest.mark.parametrize(
    ("was", "becomes", "key", "said"),
    [
        ("schema = 1", "", "schema", "is missing"),
        ("schema = 1", "schema = 2", "schema", "Known: 1."),
        ("schema = 1", "schema = '1'", "schema", "expected a whole number, got a text"),
        ('["python", "train.py", "{out}"]', '"python train.py"', "target.command", 'such as ["python"'),
        ('["python", "train.py", "{out}"]', "[]", "target.command", "expected a list of length >= 1"),
        (', "{out}"]', "]", "target.command", "neither in its words nor in env or cwd"),
        ("{out}/ckpt*.pt", "ckpt*.pt", "target.checkpoints", "Write `{out}/ckpt*.pt`."),
        ("{out}/final.pt", "/data/final.pt", "target.final", "does not begin with `{out}/`"),
        ("{out}/ckpt*.pt", "{out}/", "target.checkpoints", "names no file"),
        ("{out}/ckpt*.pt", "{out}/../x", "target.checkpoints", "names no file"),
        ("{out}/ckpt*.pt", "{out}/a//b", "target.checkpoints", "names no file"),
        ("{out}/ckpt*.pt", "{out}/ckpt[12.pt", "target.checkpoints", "a `[` is not closed"),
        ("{out}/ckpt*.pt", "{out}/ckpt**.pt", "target.checkpoints", "`**` does not stand alone"),
        ("{out}/ckpt*.pt", "{out}/{out}/x", "target.checkpoints", "can match no file"),
        ("final = ", "finale = ", "target.finale", "Did you mean `final`?"),
        ('final = ["{out}/final.pt"]', "", "target.final", "is missing"),
    ],
)
def test_wrong_target_is_named_with_what_was_meant(was: str, becomes: str, key: str, said: str) -> None:
    """Each mistake in what a target must have is reported with the key path and a way out."""
    assert was in TARGET
    message = refusal(TARGET.replace(was, becomes))
    assert message.startswith(f"mine.toml: `{key}`")
    assert said in message


@pytest.mark.parametrize(
    ("checkpoints", "final", "ignore", "said"),
    [
        ("*.pt", "final.pt", "*.log", "`target.final`: `{out}/final.pt` matches `*.pt` of `checkpoints` too"),
        ("ck", "ck/final.pt", "*.log", "`target.final`: `{out}/ck/final.pt` matches `ck` of `checkpoints` too"),
        ("m[ab].pt", "m[ab].pt", "*.log", "every file that `{out}/m[ab].pt` names matches `m[ab].pt` of `checkpoints`"),
        ("*.pt", "end-?.pt", "*.log", "every file that `{out}/end-?.pt` names matches `*.pt` of `checkpoints` too"),
        ("**/*.pt", "**/f.pt", "*.log", "every file that `{out}/**/f.pt` names matches `**/*.pt` of `checkpoints` too"),
        ("ck.pt", "final.pt", "final*", "`target.final`: `{out}/final.pt` matches `final*` of `ignore` too"),
        ("a/ck.pt", "final.pt", "ck.*", "`target.checkpoints`: `{out}/a/ck.pt` matches `ck.*` of `ignore` too"),
    ],
)
def test_file_that_another_key_takes_away_is_named(checkpoints: str, final: str, ignore: str, said: str) -> None:
    """A final file that is a checkpoint too, or one that is ignored, would not be judged: it is refused by name."""
    table = TARGET.replace("ckpt*.pt", checkpoints).replace("{out}/final.pt", f"{{out}}/{final}")
    message = refusal(f'{table}ignore = ["{ignore}"]\n')
    assert said in message
    assert "Narrow `" in message


@pytest.mark.parametrize(
    ("checkpoints", "final"),
    [
        ("ckpt*.pt", "*.pt"),
        ("*-5.pt", "model*"),
        ("*/f.pt", "**/f.pt"),
        ("ck[0-9].pt", "ck?.pt"),
        ("run/*", "run"),
        ("a.pt", "a_pt"),
    ],
)
def test_globs_that_need_not_name_the_same_files_are_read(checkpoints: str, final: str) -> None:
    """Where a final file can be one that is no checkpoint, only a run shows whether it is."""
    text = TARGET.replace("ckpt*.pt", checkpoints).replace("{out}/final.pt", f"{{out}}/{final}")
    assert parse(text).target.final == (final,)


def test_overlap_on_the_command_line_names_the_option() -> None:
    """The same mistake on the command line is reported by its option."""
    with pytest.raises(UsageError, match=r"^`--final`: `\{out\}/final\.pt` matches `\*\.pt` of `checkpoints` too"):
        scenario_from_command(("sh", OUT), ("{out}/*.pt",), ("{out}/final.pt",))


def test_toml_syntax_error_says_the_line() -> None:
    """A text that is no TOML is refused with the place of the mistake."""
    assert "is not valid TOML" in refusal("schema = 1\nclaim = = 2\n")
    assert "line 2" in refusal("schema = 1\nclaim = = 2\n")


def test_values_nested_without_end_are_refused() -> None:
    """A hostile depth of nesting is a wrong scenario, not an error of the harness."""
    assert "nested too deeply" in refusal("schema = 1\na = " + "[" * 20_000)


@given(st.text(max_size=80) | st.text("[]{}=\"'.#\n schematrg1-", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text whatsoever makes the reader fail in another way than by a refusal."""
    assert is_read_or_refused(text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(["target", "schedule", "fault", "expect", "seed", "claim", "schema"]), st.data())
def test_any_value_at_any_key_is_read_or_refused(key: str, data: st.DataObject) -> None:
    """Whatever is put at a known key, the reader reads it or refuses it."""
    document = msgspec.to_builtins({"schema": 1, key: data.draw(JSON_VALUES)})
    try:
        text = tomli_w.dumps(document)
    except (TypeError, ValueError):
        return  # TOML itself cannot hold it
    assert is_read_or_refused(text)


# --- what is written ----------------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)
NAMES = st.text("abz_.-*?0é ", min_size=1, max_size=6).filter(lambda name: name not in {".", ".."} and "**" not in name)
GLOBS = st.lists(NAMES | st.just("**"), min_size=1, max_size=3).map("/".join)
COMMANDS = st.lists(WORDS, min_size=1, max_size=3).map(lambda words: (*words, OUT))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Draw a valid scenario."""
    command = draw(COMMANDS)
    has_deadline = draw(st.booleans())
    target = Target(
        command=command,
        resume_command=draw(st.just(command) | COMMANDS),
        no_save_command=draw(st.just(()) | COMMANDS),
        checkpoints=tuple(draw(st.lists(GLOBS.map("c/{}".format), min_size=1, max_size=3))),
        final=tuple(draw(st.lists(GLOBS.map("f/{}".format), min_size=1, max_size=3))),
        ignore=tuple(draw(st.lists(st.just("*.log") | GLOBS.map("i/{}".format), max_size=2))),
        verify=draw(st.just(()) | WORDS.map(lambda word: (word, "{path}"))),
        deadline_s=draw(st.floats(0.001, 1e5)) if has_deadline else 600.0,
        env=draw(st.dictionaries(WORDS.filter(lambda name: "=" not in name), WORDS, max_size=2)),
        cwd=draw(st.just("") | WORDS),
    )
    fails = Expect(verdict=Verdict.FAIL, findings=tuple(draw(st.lists(st.sampled_from(CheckName), min_size=1))))
    return Scenario(
        name=draw(WORDS),
        claim=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
        seed=draw(st.none() | st.integers(0, MAX_SEED)),
        target=target,
        has_deadline=has_deadline,
        schedule=Schedule(
            kills=draw(st.none() | st.integers(1, MAX_KILLS)),
            phases=draw(st.just(Schedule().phases) | st.sampled_from(Phase).map(lambda phase: {phase: 1.0})),
        ),
        expect=draw(st.just(Expect()) | st.just(fails)),
    )


@given(scenarios())
def test_written_scenario_is_read_back_the_same(scenario: Scenario) -> None:
    """What `dump_scenario` writes, `parse_scenario` reads back unchanged."""
    assert parse_scenario(dump_scenario(scenario), source="s", name="other") == scenario


# --- shipped scenarios --------------------------------------------------------------------------------


def test_default_scenario_comes_first() -> None:
    """The list of shipped scenarios begins with the default and is otherwise in order of the alphabet."""
    names = shipped_scenarios()
    assert names[0] == "durable"
    assert list(names[1:]) == sorted(names[1:])
    assert {"in_place", "half", "minimind", "durable_epoch"} < set(names)


def test_default_scenario_is_the_bundled_target() -> None:
    """The shipped default says in TOML what a scenario without a target means."""
    assert shipped_scenario("durable").target == parse("schema = 1").target


@pytest.mark.parametrize("name", shipped_scenarios())
def test_shipped_scenario_is_whole(name: str) -> None:
    """Each shipped scenario loads, runs this interpreter, claims one sentence and expects what its name says."""
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.target.command[:4] == (sys.executable, "-P", "-m", "trainer")
    assert scenario.claim.endswith(".")
    assert scenario.claim.count(".") == 1
    is_good = name.startswith("durable") or name in {"disk_full", "io_error", "bit_rot"}
    assert scenario.expect.verdict == (Verdict.PASS if is_good else Verdict.FAIL)
    assert parse_scenario(dump_scenario(scenario), source="s", name="other") == scenario


# --- files --------------------------------------------------------------------------------------------


def test_scenario_file_is_loaded_with_its_programs_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file gives the scenario its name; its program becomes an absolute path, its folder the current one."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(TARGET, encoding="utf-8")
    scenario = load_scenario("mine.toml")
    assert scenario.name == "mine"
    assert scenario.target.command == (sys.executable, "train.py", "{out}")
    assert scenario.target.cwd == str(tmp_path)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("durble", "Did you mean `durable`?"),
        ("nowhere/mine.toml", "there is no scenario `nowhere/mine.toml`"),
        ("nowhere/mine.toml", "Shipped scenarios: durable, "),
        (".", "Is a directory"),
    ],
)
def test_missing_scenario_is_refused(name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scenario that is not there is refused with the names of those that are."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        load_scenario(name)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff\xfe", "is not UTF-8 text (byte 0)"), (b"#" * 2_000_000, "too large")]
)
def test_unreadable_scenario_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    """A file that is no text, or far too long, is refused by name."""
    path = tmp_path / "odd.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"odd\.toml") as caught:
        load_scenario(str(path))
    assert said in str(caught.value)


def test_missing_working_folder_is_refused(tmp_path: Path) -> None:
    """A folder to run in that does not exist is refused before anything starts."""
    path = tmp_path / "mine.toml"
    path.write_text(TARGET + 'cwd = "/no/such/folder"', encoding="utf-8")
    with pytest.raises(UsageError, match="/no/such/folder"):
        load_scenario(str(path))


# --- the user's own command ---------------------------------------------------------------------------


def test_command_line_gives_a_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-- python train.py {out}` becomes a scenario that is named after the script and runs in this folder."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.chdir(tmp_path)
    scenario = scenario_from_command(["python", "train.py", OUT], ["{out}/c*.pt"], ["{out}/f/"], step=r"s(\d)")
    command = (sys.executable, "train.py", OUT)
    assert scenario.name == "train"
    assert scenario.target == Target(
        command=command,
        resume_command=command,
        checkpoints=("c*.pt",),
        final=("f",),
        step=r"s(\d)",
        cwd=str(tmp_path),
    )


@pytest.mark.parametrize(
    ("command", "checkpoints", "final", "said"),
    [
        ((), ("{out}/c",), ("{out}/f",), "the command after `--`: is missing"),
        (("sh", OUT), (), ("{out}/f",), "`--checkpoints`: is missing"),
        (("sh", OUT), ("{out}/c",), (), "`--final`: is missing"),
        (("sh", OUT), ("c",), ("{out}/f",), "Write `{out}/c`."),
        (("sh", "x"), ("{out}/c",), ("{out}/f",), "pass `{out}` where the output folder is given"),
        (("no-such-program", OUT), ("{out}/c",), ("{out}/f",), "`no-such-program` is not on PATH"),
        (("./missing", OUT), ("{out}/c",), ("{out}/f",), "`./missing` does not exist"),
        (("/etc/passwd", OUT), ("{out}/c",), ("{out}/f",), "`/etc/passwd` cannot be executed"),
        (("sh", OUT, "\udcff"), ("{out}/c",), ("{out}/f",), "a character that no command can have"),
    ],
)
def test_wrong_command_line_names_the_option(
    command: tuple[str, ...], checkpoints: tuple[str, ...], final: tuple[str, ...], said: str
) -> None:
    """A mistake on the command line is reported in terms of its options."""
    with pytest.raises(UsageError) as caught:
        scenario_from_command(command, checkpoints, final)
    assert said in str(caught.value)


def _executable(path: Path) -> str:
    """Make an executable file and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_bare_python_is_the_active_environment_or_else_our_own(tmp_path: Path) -> None:
    """With an environment active `python` is PATH's; without one it is the interpreter that runs `chaos`."""
    theirs = _executable(tmp_path / "bin" / "python")
    path = str(tmp_path / "bin")
    for active in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        found = resolve_command(("python", "x"), environment={"PATH": path, active: "/v"}, folder="/")
        assert found == (theirs, "x")
    assert resolve_command(("python", "x"), environment={"PATH": path}, folder="/") == (sys.executable, "x")
    environment = {"PATH": path, "VIRTUAL_ENV": "/v"}
    assert resolve_command(("{python}",), environment=environment, folder="/") == (sys.executable,)


def test_program_with_a_slash_is_found_from_the_working_folder(tmp_path: Path) -> None:
    """`./train.sh` is looked for where the command will run, and left alone where only a trial knows the folder."""
    script = _executable(tmp_path / "train.sh")
    assert resolve_command(("./train.sh",), environment={}, folder=str(tmp_path)) == (script,)
    assert resolve_command(("./train.sh",), environment={}, folder="{out}/x") == ("./train.sh",)
    assert resolve_command(("{out}/a",), environment={}, folder="/") == ("{out}/a",)


# --- the schema ---------------------------------------------------------------------------------------


def test_schema_knows_the_keys_and_forbids_others() -> None:
    """The JSON Schema is JSON, names every key of a scenario, and allows no unknown one."""
    schema = json.loads(json.dumps(json_schema()))
    top = schema["$defs"]["ScenarioTable"]
    assert set(top["properties"]) == {"schema", "name", "claim", "seed", "target", "schedule", "fault", "expect"}
    assert top["required"] == ["schema"]
    assert all(not one["additionalProperties"] for one in schema["$defs"].values() if one.get("type") == "object")


def test_what_is_expected_of_single_kinds_says_what_is_expected_of_all() -> None:
    """Without a verdict of its own a scenario expects the gravest of those of its kinds of fault."""
    faults = "[[fault]]\nkind = 'kill'\n[[fault]]\nkind = 'power_loss'\n"
    expect = "[expect]\nverdicts = { kill = 'pass', power_loss = 'fail' }\nfindings = ['acknowledged_lost']\n"
    scenario = parse_scenario(TARGET + faults + expect, source="mine.toml", name="mine")
    assert scenario.expect.verdict is Verdict.FAIL
    assert scenario.expect.verdicts == {FaultKind.KILL: Verdict.PASS, FaultKind.POWER_LOSS: Verdict.FAIL}
    assert parse_scenario(dump_scenario(scenario), source="again", name="mine") == scenario


@pytest.mark.parametrize(
    ("written", "kinds"),
    [
        ("", (FaultKind.KILL,)),
        ("[[fault]]\nkind = 'disk_full'", (FaultKind.DISK_FULL,)),
        ("[[fault]]\nkind = 'io_error'\n[[fault]]\nkind = 'kill'", (FaultKind.IO_ERROR, FaultKind.KILL)),
    ],
)
def test_a_scenario_says_which_faults(written: str, kinds: tuple[FaultKind, ...]) -> None:
    """The kinds come in the order in which they are written; where none is, it is the kill, and nothing was said."""
    scenario = parse_scenario(TARGET + written, source="mine.toml", name="mine")
    assert scenario.kinds == kinds
    assert bool(scenario.faults) is bool(written)
    assert parse_scenario(dump_scenario(scenario), source="again", name="mine") == scenario


def test_schema_describes_every_key() -> None:
    """Each property of each table has a description of its own, and each table one."""
    schema = json_schema()
    tables = {name: table for name, table in schema["$defs"].items() if table.get("type") == "object"}
    assert set(tables) == {"ScenarioTable", "TargetTable", "Schedule", "FaultSpec", "ExpectTable"}
    described = [prop.get("description", "") for table in tables.values() for prop in table["properties"].values()]
    assert len(described) == 8 + 12 + 2 + 1 + 4
    assert all(text.endswith(".") for text in described)
    assert len(set(described)) == len(described)
    assert all(table["description"] for table in tables.values())

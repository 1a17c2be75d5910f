"""File names: globs and roles, keys by rules, and the rules learnt from two references."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.model import FileRole, NameRule, Target, TargetProfile
from chaos.names import learn_names
from chaos.roles import MAX_KNOWN_PATHS, FileNames, compile_globs


def names_for(profile: TargetProfile | None = None, **globs: tuple[str, ...]) -> FileNames:
    """Return the names of a target with the given globs."""
    target = Target(
        command=("true",),
        resume_command=("true",),
        checkpoints=globs.get("checkpoints", ()),
        final=globs.get("final", ()),
        ignore=globs.get("ignore", ()),
    )
    return FileNames(target, profile or TargetProfile())


def keys(run_a: list[list[str]], run_b: list[list[str]]) -> dict[str, str]:
    """Return the key of each path of the two runs, by the rules learnt from them."""
    names = names_for(TargetProfile(names=learn_names(run_a, run_b)))
    return {path: names.key_of(path) for run in (run_a, run_b) for save in run for path in save}


@pytest.mark.parametrize(
    ("glob", "path", "is_match"),
    [
        ("resume*.pt", "resume.pt", True),
        ("resume*.pt", "resume.prev.pt", True),
        ("resume*.pt", "resume.pt.tmp", False),
        ("resume*.pt", "a/resume.pt", False),
        ("*", "a/b", True),  # beneath a folder that matches
        ("*.pt", "a/b.pt", False),
        ("**/*.pt", "b.pt", True),
        ("**/*.pt", "a/x/b.pt", True),
        ("a/**", "a/x/b.pt", True),
        ("checkpoint-*", "checkpoint-30/model.pt", True),
        ("checkpoint-*/", "checkpoint-30", True),
        ("checkpoint-[0-9]", "checkpoint-3", True),
        ("checkpoint-[0-9]", "checkpoint-30", False),
        ("a[!b]c", "axc", True),
        ("a[!b]c", "abc", False),
        ("a[!b]c", "a/c", False),
        ("a[]]c", "a]c", True),
        ("a[z-a]", "a[z-a]", True),
        ("a[", "a[", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a.c", "abc", False),
        ("{out}/ckpt.pt", "ckpt.pt", True),
    ],
)
def test_globs_match_as_in_a_shell(glob: str, path: str, is_match: bool) -> None:  # noqa: FBT001 parametrized
    """A star stays within a part of the path, two cross parts, and a folder that matches takes along what is in it."""
    assert bool(compile_globs((glob,)).fullmatch(path)) is is_match


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_is_a_glob(glob: str, path: str) -> None:
    """No text is refused as a glob, and one without wildcards matches itself."""
    pattern = compile_globs((glob,))
    pattern.fullmatch(path)
    if not set(glob) & set("*?[/{"):
        assert pattern.fullmatch(glob)


def test_roles_follow_globs_temporaries_and_ignored_names() -> None:
    """Checkpoints come first, then final files, then temporaries; what is ignored or outside is other."""
    profile = TargetProfile(
        names=(NameRule(pattern=r"tmp\-\d+", key="tmp-{step}"),),
        temporaries=("tmp-{step}", "w.tmp"),
        final_temporaries=("w.tmp",),
    )
    names = names_for(profile, checkpoints=("*.pt", "run"), final=("w.pt", "w.bin"), ignore=("*.log",))
    roles = {
        "a.pt": FileRole.CHECKPOINT,
        "w.pt": FileRole.CHECKPOINT,
        "w.bin": FileRole.FINAL,
        "run/deep/file": FileRole.CHECKPOINT,
        "run/deep/train.log": FileRole.OTHER,
        "tmp-30": FileRole.TEMPORARY,
        "tmp-30/deep/file": FileRole.TEMPORARY,
        "tmp-x": FileRole.OTHER,
        "/elsewhere/a.pt": FileRole.OTHER,
        "../a.pt": FileRole.OTHER,
        "": FileRole.OTHER,
        ".": FileRole.OTHER,
    }
    assert {path: names.role_of(path) for path in roles} == roles
    assert [path for path in roles if names.name(path).opens_save] == [
        "a.pt",
        "w.pt",
        "run/deep/file",
        "tmp-30",
        "tmp-30/deep/file",
    ]
    assert names.name("w.tmp").opens_save is False
    assert [path for path in roles if names.is_beside(path)] == ["tmp-x"]


def test_the_cache_of_names_is_bounded() -> None:
    """However many random names a life uses, only so many are kept."""
    names = names_for(checkpoints=("*.pt",))
    for number in range(MAX_KNOWN_PATHS + 10):
        assert names.role_of(f"{number}.pt") is FileRole.CHECKPOINT
    assert len(names._known) <= MAX_KNOWN_PATHS


def test_a_file_in_a_named_folder_has_the_folders_key() -> None:
    """A name that was never seen, in a folder whose name varies, is known by the folder's key."""
    names = names_for(TargetProfile(names=(NameRule(pattern=r"checkpoint\-\d+", key="checkpoint-{step}"),)))
    assert names.key_of("checkpoint-40/deep/new.bin") == "checkpoint-{step}/deep/new.bin"
    assert names.key_of("/absolute/checkpoint-40") == "/absolute/checkpoint-40"


def test_names_that_do_not_vary_need_no_rules() -> None:
    """Two runs with the same names, and two empty ones, teach nothing."""
    run = [["resume.pt.tmp", "resume.pt", "fp16/w.pt"]] * 3
    assert learn_names(run, run) == ()
    assert learn_names([], []) == ()
    assert learn_names([[""]], [["", ""]]) == ()


@pytest.mark.parametrize(
    ("name_a", "name_b", "key"),
    [
        ("r.pt.123.tmp", "r.pt.4567.tmp", "r.pt.{any}.tmp"),
        (".tmpAbC123", ".tmpXyZ987", ".tmp{any}"),
        (".tmpAbC123", ".tmpAbD987", ".tmp{any}"),  # an equal beginning of random letters is chance
        ("resume_123.tmp", "resume_99.tmp", "resume_{any}.tmp"),
        ("v2run12.pt", "v2run345.pt", "v2run{any}.pt"),
        ("my_model_k3x_new.pt", "my_model_99_new.pt", "my_model_{any}_new.pt"),
        ("a1b2-99.pt", "ffee-12.pt", "{any}-{any}.pt"),
        ("host-a.123/w.pt", "host-b.77/w.pt", "host-{any}.{any}/w.pt"),
        ("x_", "x_1", "{any}"),
    ],
)
def test_tokens_that_differ_between_the_references_become_any(name_a: str, name_b: str, key: str) -> None:
    """Process ids, times and random letters give one key, and what a programmer chose around them stays."""
    assert keys([[name_a]], [[name_b]]) == {name_a: key, name_b: key}


def test_digits_that_change_from_save_to_save_become_step() -> None:
    """Step numbers vary with the save, though an older one is touched again; shards and precisions do not."""
    run = [[f"ckpt-{s}/fp16-{k}.pt" for s in (10 * i, 10 * i + 10) for k in range(2)] for i in range(4)]
    found = keys(run, run)
    assert set(found.values()) == {"ckpt-{step}/fp16-0.pt", "ckpt-{step}/fp16-1.pt"}
    assert found["ckpt-10/fp16-1.pt"] == "ckpt-{step}/fp16-1.pt"


def test_rotating_numbers_are_not_steps() -> None:
    """Numbered predecessors, which every save touches, stay apart from each other."""
    run = [["r.pt"], ["r.1.pt", "r.pt"], ["r.2.pt", "r.1.pt", "r.pt"], ["r.2.pt", "r.1.pt", "r.pt"]]
    assert all(path == key for path, key in keys(run, run).items())


def test_step_and_process_id_in_one_name() -> None:
    """Both kinds of placeholder are found side by side."""
    runs = [[[f"ckpt-{s}.{pid}.tmp", f"ckpt-{s}"] for s in (10, 20, 30)] for pid in ("4711", "815")]
    found = keys(*runs)
    assert found["ckpt-20.4711.tmp"] == found["ckpt-30.815.tmp"] == "ckpt-{step}.{any}.tmp"
    assert found["ckpt-30"] == "ckpt-{step}"


def test_a_literal_name_is_not_swallowed_by_a_wider_rule() -> None:
    """A fixed name beside random ones of the same form keeps its own key."""
    runs = [[["ckpt_best.pt", f"ckpt_{token}.pt"]] for token in ("a1x", "b2y")]
    found = keys(*runs)
    assert found["ckpt_best.pt"] == "ckpt_best.pt"
    assert found["ckpt_a1x.pt"] == found["ckpt_b2y.pt"] == "ckpt_{any}.pt"


def test_two_files_of_one_save_are_paired_by_likeness_not_by_order() -> None:
    """Two writers that come in another order in the other run are still told apart."""
    found = keys([["resume.1.tmp", "weights.1.tmp"]], [["weights.2.tmp", "resume.2.tmp"]])
    assert found["resume.1.tmp"] == found["resume.2.tmp"] == "resume.{any}.tmp"
    assert found["weights.1.tmp"] == found["weights.2.tmp"] == "weights.{any}.tmp"
    found = keys([["opt_k1.tmp", "w_k2.tmp"]], [["w_zz.tmp", "opt_yy.tmp"]])
    assert set(found.values()) == {"opt_{any}.tmp", "w_{any}.tmp"}


TOKENS = st.text("abcdXYZ0123456789_", min_size=1, max_size=8)


@given(
    stems=st.lists(st.text("abcdefgh", min_size=3, max_size=6), min_size=1, max_size=4, unique=True),
    tokens=st.lists(TOKENS, min_size=2, max_size=2, unique=True),
    steps=st.lists(st.integers(0, 10**6), min_size=2, max_size=5, unique=True),
)
def test_files_of_one_save_never_share_a_key(stems: list[str], tokens: list[str], steps: list[int]) -> None:
    """Names that differ in a fixed part have different keys, and each has the same one in every save of both runs."""
    runs = [[[f"d-{step}/{stem}.{token}.tmp" for stem in stems] for step in steps] for token in tokens]
    found = keys(*runs)
    by_stem = {stem: {found[f"d-{step}/{stem}.{token}.tmp"] for step in steps for token in tokens} for stem in stems}
    assert all(len(found_keys) == 1 for found_keys in by_stem.values())
    assert len(set.union(*by_stem.values())) == len(stems)


@given(*[st.lists(st.lists(st.text("ab1/._-é", max_size=8), max_size=4), max_size=4)] * 2)
def test_rules_are_valid_whatever_the_names(run_a: list[list[str]], run_b: list[list[str]]) -> None:
    """Odd names raise nothing, every rule is a regular expression, and learning is the same twice."""
    rules = learn_names(run_a, run_b)
    for rule in rules:
        re.compile(rule.pattern)
    assert rules == learn_names(run_a, run_b)

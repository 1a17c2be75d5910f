"""Scripts of many shapes that know nothing of this tool: each correct one passes, each bug is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

WARNINGS = frozenset({"leaked_files", "unsafe_checkpoint"})
VERDICT_STATUS = {"pass": 0, "fail": 1, "inconclusive": 4}
LOST = ("no_valid_checkpoint", "resume_crashed")


class Case(NamedTuple):
    """One script, how it is run, and what must come of it: `found` all of it, `allowed` any of it, and nothing else."""

    script: str
    arguments: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ("{out}/ckpt.json",)
    final: str = "{out}/final.json"
    options: tuple[str, ...] = ()
    kills: int = 8
    seeds: tuple[int, ...] = (1,)
    verdict: str = "pass"
    found: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


CORRECT = (
    Case("atomic", seeds=(1, 2)),
    Case("silent"),
    Case("mkstemp_silent", seeds=(1, 2), allowed=("leaked_files",)),  # what a kill leaves has a new name each time
    Case("sparse_lines"),
    Case("zero_based"),
    Case("progress_bar"),
    Case("two_threads", checkpoints=("{out}/ckpt-*",), seeds=(1, 2)),
    Case("logs_from_a_thread"),
    Case("varying_names"),
    Case("rotating", checkpoints=("{out}/step_*", "{out}/latest")),
    Case("safetensors_and_json", checkpoints=("{out}/ckpt*",), final="{out}/final.safetensors"),
    Case("numpy_npz", checkpoints=("{out}/ckpt.npz",), final="{out}/final.npz"),
    Case("forked_saver"),
    Case("subprocess_saver"),
    Case("background_saver", seeds=(1, 2)),
    Case("torch_trainer", checkpoints=("{out}/ckpt.pt",), final="{out}/final.pt", kills=3),
)
WRONG = (
    Case("in_place", verdict="fail", found=LOST),
    Case("descriptor_in_place", verdict="fail", found=LOST),
    Case("forked_saver", ("--in-place",), verdict="fail", found=LOST),
    Case("subprocess_saver", ("--in-place",), verdict="fail", found=LOST),
    Case("deletes_first", verdict="fail", found=("no_valid_checkpoint",), allowed=("lost_work",)),
    Case("points_first", checkpoints=("{out}/step_*.json",), verdict="fail", found=("resume_crashed",)),
    Case("resume_rewrites", verdict="fail", found=("resume_crashed",), allowed=("no_valid_checkpoint",)),
    Case("starts_at_zero", verdict="fail", found=("lost_work", "no_valid_checkpoint")),
    Case("uses_older", checkpoints=("{out}/ckpt*.json",), verdict="fail", found=("lost_work",)),
    Case(
        "announces_early",
        verdict="fail",
        found=("acknowledged_lost",),
        allowed=("no_valid_checkpoint", "lost_work"),
    ),
    Case("hangs_on_its_lock", options=("--deadline", "2"), kills=2, verdict="fail", found=("resume_hung",)),
    Case("leaves_an_orphan", kills=1, verdict="fail", found=("orphan_processes",)),
    Case("leaks_temporaries", kills=10, found=("leaked_files",)),
    Case("leaks_temporaries", options=("--strict",), kills=10, verdict="fail", found=("leaked_files",)),
    Case("never_resumes", verdict="fail", found=("lost_work",)),
    Case("never_resumes", ("--silent",), verdict="fail", found=("lost_work",)),
    Case("skips_the_end", verdict="fail", found=("did_not_finish",), allowed=("silent_divergence",)),
    Case("gives_up_quietly", verdict="fail", found=("no_valid_checkpoint", "did_not_finish")),
    Case("forgets_generator", verdict="fail", found=("silent_divergence",)),
    Case(
        "torch_trainer",
        ("--in-place",),
        checkpoints=("{out}/ckpt.pt",),
        final="{out}/final.pt",
        kills=3,
        verdict="fail",
        found=LOST,
    ),
    Case(
        "torch_trainer",
        ("--forget-optimizer",),
        checkpoints=("{out}/ckpt.pt",),
        final="{out}/final.pt",
        kills=2,
        verdict="fail",
        found=("silent_divergence",),
    ),
    Case("varies", verdict="inconclusive"),
    Case("memory_mapped", verdict="inconclusive"),
)


def _parameters(cases: tuple[Case, ...]) -> list[Any]:
    """Return one parameter for each case and seed, with a name that says both."""
    return [
        pytest.param(case, seed, id="-".join([case.script, *case.arguments, *case.options, str(seed)]))
        for case in cases
        for seed in case.seeds
    ]


@pytest.mark.parametrize(("case", "seed"), _parameters(CORRECT + WRONG))
def test_script_gets_its_verdict(
    case: Case, seed: int, tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """Verdict, findings and exit status are the script's own, and as many kills as asked for have landed."""
    globs = [word for glob in case.checkpoints for word in ("--checkpoints", glob)]
    words = [*globs, "--final", case.final, *case.options, "--", *command_of(case.script, *case.arguments)]
    campaign = run_campaign(tmp_path, *words, seed=seed, kills=case.kills)
    assert campaign.result["verdict"] == case.verdict, campaign.explain()
    assert campaign.status == VERDICT_STATUS[case.verdict]
    assert set(case.found) <= campaign.findings <= {*case.found, *case.allowed}, campaign.explain()
    assert campaign.result["kills_landed"] == case.kills
    assert sum(campaign.result["kills_by_phase"].values()) == case.kills


def test_times_in_files_are_left_out_and_said(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """What differs between two uninterrupted runs, beside the weights, is left out of the comparison by name."""
    globs = ["--checkpoints", "{out}/ckpt.json", "--final", "{out}/final.json"]
    campaign = run_campaign(tmp_path, *globs, "--", *command_of("timestamps"), seed=1, kills=6)
    assert campaign.result["verdict"] == "pass", campaign.explain()
    assert campaign.result["reference"]["varying_leaves"] == {"final.json": ["saved_at"]}


def _scenario(folder: Path, command: list[str], **tables: Any) -> str:
    """Write a scenario for a script beside its runs; JSON's strings and lists are TOML's too."""
    target = {"command": command, "checkpoints": ["{out}/ckpt.json"], "final": ["{out}/final.json"]}
    target |= tables.pop("target", {})
    lines = ["schema = 1", "[target]", *(f"{key} = {json.dumps(value)}" for key, value in target.items())]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in table.items())]
    path = folder / "scenario.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_saving_that_changes_the_training_is_found_without_any_kill(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """A save that draws from the generator is found by the command that trains without saving."""
    quiet = command_of("draws_when_saving", "--no-save")
    scenario = _scenario(tmp_path, command_of("draws_when_saving"), target={"no_save_command": quiet})
    campaign = run_campaign(tmp_path, scenario, seed=1, kills=4)
    assert (campaign.status, campaign.findings) == (1, {"saving_changes_training"}), campaign.explain()


def test_final_file_torn_by_a_kill_and_taken_for_whole_is_found(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """Kills in the finish find a script that does not write its final file again."""
    scenario = _scenario(tmp_path, command_of("final_only_once"), schedule={"phases": "{ finish = 1.0 }"})
    campaign = run_campaign(tmp_path, scenario, seed=1, kills=4)
    assert (campaign.status, campaign.findings) == (1, {"did_not_finish"}), campaign.explain()
    assert campaign.result["kills_by_phase"]["finish"] == 4


def test_scenario_that_expects_its_failure_ends_with_status_0(
    tmp_path: Path, run_campaign: Callable[..., Any], command_of: Callable[..., list[str]]
) -> None:
    """An expected failure is exit status 0 while the verdict stays what it is; another one than expected is 1."""
    for findings, status in (['["no_valid_checkpoint", "resume_crashed"]', 0], ['["resume_hung"]', 1]):
        expect = {"verdict": '"fail"', "findings": findings}
        scenario = _scenario(tmp_path, command_of("in_place"), expect=expect)
        campaign = run_campaign(tmp_path, scenario, seed=1, kills=6)
        assert (campaign.status, campaign.result["verdict"]) == (status, "fail"), campaign.explain()
        assert campaign.result["as_expected"] is (status == 0)

"""`chaos explore` finds every point at which a kill does harm, and no other; the same whatever the circumstances."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXPLORED = Path(__file__).with_name("targets") / "explored.py"
GLOBS = ("--checkpoints", "{out}/ckpt*.json", "--final", "{out}/final.json")
SAME = ("verdict", "points", "states_distinct", "states_judged", "by_operation", "intervals", "checks")


@pytest.fixture
def explore(chaos_command: Path, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Give a function that explores one way of the target and returns the JSON object."""

    def run(way: str, *options: str, env: dict[str, str] | None = None, status: int | None = None) -> dict[str, Any]:
        runs = tmp_path / f"runs-{len(list(tmp_path.iterdir()))}"
        command = [chaos_command, "explore", "--json", "--seed", "4", "--runs", str(runs), *options, *GLOBS]
        command += ["--", sys.executable, "-S", "-E", str(EXPLORED), "{out}", way]
        done = subprocess.run(command, capture_output=True, check=False, timeout=240, env={**os.environ, **(env or {})})
        assert done.stdout, done.stderr.decode()
        result: dict[str, Any] = json.loads(done.stdout)
        result["status"] = done.returncode
        if status is not None:
            assert done.returncode == status, done.stderr.decode()
        return result

    return run


def harm(result: dict[str, Any], check: str) -> list[tuple[int, int, str, str]]:
    """Return (life, save, opening operation, closing operation) of each interval of a check."""
    return [
        (found["life"], found["save"], spelled(found["opens"]), spelled(found["closes"]))
        for found in result["intervals"]
        if found["check"] == check
    ]


def spelled(address: dict[str, Any] | None) -> str:
    """Say which operation an address is."""
    return "" if address is None else f"{address['call']} #{address['occurrence']} of {address['file']}"


@pytest.mark.parametrize("way", ["durable", "two_slots", "names_its_folder", "marked", "slots_by_ctime"])
def test_every_point_of_a_good_save_is_judged_and_passes(explore: Callable[..., dict[str, Any]], way: str) -> None:
    """All crash points, in all saves and beside them, lead to a state that the target comes back from."""
    result = explore(way, status=0)
    assert (result["verdict"], result["intervals"], result["findings"]) == ("pass", [], [])
    assert result["states_judged"] == result["states_distinct"] >= 20
    assert result["points_judged"] == result["points"] > result["states_distinct"]
    assert sum(count["points"] for count in result["by_operation"]) == result["points"]


def test_the_interval_of_an_overwriting_save_is_exact(explore: Callable[..., dict[str, Any]]) -> None:
    """From the truncating open to the last write of each save after the first, which has nothing to lose."""
    result = explore("in_place", "--depth", "1", status=1)
    wanted = [(1, save, "openat #1 of ckpt.json", "write #3 of ckpt.json") for save in (2, 3)]
    assert harm(result, "no_valid_checkpoint") == wanted
    failing = {count["operation"]: count for count in result["by_operation"] if count["file"] == "ckpt.json"}
    assert failing["openat"]["failing"] == 0
    # Before each of the three writes, and inside of the one that spans pages; in the first save it cannot resume.
    assert failing["write"]["points"] > 3 * 3
    assert failing["write"]["failing"] == failing["write"]["points"]


def test_a_name_that_is_gone_before_the_new_one_is_there(explore: Callable[..., dict[str, Any]]) -> None:
    """Between the unlink and the rename there is no checkpoint."""
    result = explore("unlinks_first", status=1)
    assert harm(result, "no_valid_checkpoint") == [
        (1, save, "unlink #1 of ckpt.json", "rename #1 of ckpt.json") for save in (2, 3)
    ]


def test_a_time_that_the_target_sets_is_part_of_a_state(explore: Callable[..., dict[str, Any]]) -> None:
    """A checkpoint that counts as whole by its time alone: between the rename and utimes it does not."""
    result = explore("dates_it_last", "--depth", "1", status=1)
    assert harm(result, "resume_crashed") == [
        (1, save, "rename #1 of ckpt.json", "utime #1 of ckpt.json") for save in (1, 2, 3)
    ]


def test_a_file_that_is_no_checkpoint_is_struck_too(explore: Callable[..., dict[str, Any]]) -> None:
    """What lies beside the checkpoints and is read by a resume: torn in place, the job does not come back."""
    result = explore("reads_aside", "--depth", "1", status=1)
    found = [(opens, closes) for _, _, opens, closes in harm(result, "resume_crashed")]
    assert found == [("openat #1 of aside.json", "write #3 of aside.json")] * 3


def test_the_order_of_times_is_part_of_a_state(explore: Callable[..., dict[str, Any]]) -> None:
    """The newest checkpoint by time: while the old one is the one touched last, an older step is resumed from."""
    result = explore("touches_the_old_one", "--depth", "1", status=1)
    assert [opens for _, _, opens, _ in harm(result, "lost_work")] != []
    assert all(opens.startswith("utime #1") for _, _, opens, _ in harm(result, "lost_work"))


def test_a_copy_by_the_kernel_is_torn_too(explore: Callable[..., dict[str, Any]]) -> None:
    """sendfile, as shutil.copyfile uses it, stops at a page boundary when it is killed."""
    result = explore("copied", "--depth", "1", status=1)
    failing = {count["operation"]: count for count in result["by_operation"] if count["file"] == "ckpt.json"}
    assert failing["sendfile"]["points"] > 3
    assert failing["sendfile"]["failing"] > 3


def test_what_is_said_too_early_is_lost(explore: Callable[..., dict[str, Any]]) -> None:
    """From the acknowledgement to the rename that it should have waited for."""
    result = explore("says_too_early", status=1)
    found = harm(result, "acknowledged_lost")
    assert found
    assert all(closes == "rename #1 of ckpt.json" for _, _, _, closes in found)


def test_a_recovery_that_destroys_is_found_at_depth_two_only(explore: Callable[..., dict[str, Any]]) -> None:
    """A resume that rewrites the only checkpoint in place survives one kill anywhere, and not a second one."""
    assert explore("rewrites_on_resume", "--depth", "1", status=0)["verdict"] == "pass"
    result = explore("rewrites_on_resume", status=1)
    lives = {life for life, *_ in harm(result, "no_valid_checkpoint")}
    assert lives == {2}
    opens = {opens for _, _, opens, _ in harm(result, "no_valid_checkpoint")}
    assert opens == {"openat #1 of ckpt.json"}


def test_circumstances_change_nothing(explore: Callable[..., dict[str, Any]]) -> None:
    """One worker or two, another hash seed, fresh lives, busy cores: the same points, states, intervals, verdict."""
    first = explore("in_place", "--saves", "2", "--jobs", "1")
    for options, env in (
        (("--jobs", "2"), {}),
        (("--jobs", "2"), {"PYTHONHASHSEED": "77"}),
        (("--jobs", "2", "--lives", "fresh"), {}),
    ):
        other = explore("in_place", "--saves", "2", *options, env=env)
        assert {key: other[key] for key in SAME} == {key: first[key] for key in SAME}, options
    busy = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(4)]
    try:
        loaded = explore("in_place", "--saves", "2", "--jobs", "2")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert {key: loaded[key] for key in SAME} == {key: first[key] for key in SAME}


@pytest.mark.parametrize(("saves", "wanted"), [("first", {1}), ("last", {3}), ("2", {2})])
def test_saves_are_chosen(explore: Callable[..., dict[str, Any]], saves: str, wanted: set[int]) -> None:
    """Only the crash points of the saves asked for, and the first one after them."""
    result = explore("in_place", "--saves", saves, "--depth", "1")
    assert {save for _, save, _, _ in harm(result, "resume_crashed")} == wanted
    assert result["points_judged"] == result["points"]


def test_a_budget_stops_cleanly_and_says_what_is_missing(explore: Callable[..., dict[str, Any]]) -> None:
    """What was not judged is counted, and the exploration is inconclusive: never passed."""
    result = explore("durable", "--budget", "1s", "--lives", "fresh", "--jobs", "1", status=4)
    assert result["verdict"] == "inconclusive"
    assert result["points_judged"] < result["points"]
    left = result["points"] - result["points_judged"]
    assert any(
        text.startswith(f"{left} of {result['points']} crash points were not judged") for text in result["inconclusive"]
    )


def test_an_exploration_goes_on_where_it_was(
    chaos_command: Path, tmp_path: Path, explore: Callable[..., dict[str, Any]], processes_with: Callable[..., Any]
) -> None:
    """SIGKILL in mid-exploration: nobody is left, and --continue ends with what an undisturbed one says."""
    whole = explore("in_place", "--jobs", "2")
    runs = tmp_path / "killed"
    command = [chaos_command, "explore", "--json", "--seed", "4", "--runs", str(runs), "--jobs", "2", *GLOBS]
    command += ["--", sys.executable, "-S", "-E", str(EXPLORED), "{out}", "in_place"]
    campaign = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert campaign.stderr is not None
    journal = runs / "latest" / "journal.ndjson"
    while not (journal.exists() and journal.read_bytes().count(b'"kind":"explored"') >= 5):
        assert campaign.poll() is None
        os.sched_yield()
    campaign.send_signal(signal.SIGKILL)
    campaign.communicate()
    done = subprocess.run(
        [chaos_command, "run", "--continue", "--runs", str(runs), "--json"],
        capture_output=True,
        check=False,
        timeout=120,
    )
    result = json.loads(done.stdout)
    assert {key: result[key] for key in SAME} == {key: whole[key] for key in SAME}
    assert processes_with(str(runs)) == []


def test_a_finding_is_shown_again_by_its_replay(
    chaos_command: Path, tmp_path: Path, explore: Callable[..., dict[str, Any]]
) -> None:
    """The command that the finding ends with builds the same state, and the same rule is broken."""
    result = explore("in_place", "--saves", "2")
    finding = result["findings"][0]
    words = finding["replay"].split()
    done = subprocess.run(
        [chaos_command, *words[1:], "--json"], capture_output=True, check=False, timeout=60, cwd=tmp_path
    )
    replay = json.loads(done.stdout)
    assert replay["is_same"], done.stderr
    assert finding["check"] in {found["check"] for found in replay["findings"]}


def test_a_place_without_interception_is_refused(chaos_command: Path, tmp_path: Path) -> None:
    """An exploration needs every operation: a sentence, and exit status 2."""
    done = subprocess.run(
        [chaos_command, "explore", "durable", "--runs", str(tmp_path)],
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "CHAOS_NO_INTERCEPT": "true"},
    )
    assert done.returncode == 2
    assert b"without interception" in done.stderr

"""Real power cuts: what savers lose and lack is found, nothing leaks, whoever is killed; errors say what to do.

Other tests at the same time call sync(2), which is for all file systems of the machine: a single cut may find
everything on the disk, so nothing here rests on one alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from msgspec.structs import replace

from chaos.errors import UsageError
from chaos.images import DEFAULT_KINDS, find_usable
from chaos.invocation import go_on
from chaos.journal import Event, TrialFinished, read_events
from chaos.model import Cut, TrialKind, Verdict
from chaos.powercut import _exit_status, judge_cuts
from chaos.reports.powercut import PowerCuts, print_powercuts
from chaos.settings import SettingsLayer

TESTS = Path(__file__).parents[1]
DURABLE = TESTS / "quality" / "targets" / "durable.py"
WITHOUT_FOLDER = TESTS / "quality" / "targets" / "atomic.py"
WITHOUT_ANY = TESTS / "cli" / "targets" / "small.py"
WORKER = "chaos.executors.worker"
CUTS = 6
DEADLINE_S = 120
REPLAYS = 10
PATIENCE_S = 30.0


class Ended(NamedTuple):
    """A campaign of power cuts that is over: its exit status, the object that it printed, what it said, its folder."""

    status: int
    result: dict[str, Any]
    said: str
    folder: Path

    @property
    def events(self) -> tuple[Event, ...]:
        """Return its journal."""
        return read_events(self.folder)


@pytest.fixture(scope="module")
def kinds() -> str:
    """Return the file systems that can be used here; skip, with the reasons, where there is none."""
    found = find_usable(DEFAULT_KINDS)
    if not any(usable.is_usable for usable in found):
        pytest.skip("; ".join(f"{usable.kind}: {usable.reason}" for usable in found))
    return ",".join(usable.kind for usable in found if usable.is_usable)


def words_of(kinds: str, runs: Path, script: Path, *options: str) -> list[str]:
    """Return the words of a campaign on a small target."""
    globs = ["--checkpoints", "{out}/ckpt.json", "--final", "{out}/final.json"]
    settings = ["--fs", kinds, "--cuts", str(CUTS), "--seed", "7", "--jobs", "2", "--runs", str(runs), "--json"]
    return ["powercut", *settings, *options, *globs, "--", sys.executable, "-S", "-E", str(script), "{out}"]


@pytest.fixture(scope="module")
def run(chaos_command: Path, kinds: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Ended]:
    """Return a function that runs a campaign on a script, once for all tests."""
    ended: dict[Path, Ended] = {}

    def run_once(script: Path) -> Ended:
        if script not in ended:
            runs = tmp_path_factory.mktemp("powercut") / "runs"
            done = subprocess.run(
                [chaos_command, *words_of(kinds, runs, script)],
                capture_output=True,
                text=True,
                check=False,
                timeout=DEADLINE_S,
            )
            assert done.stdout, done.stderr
            ended[script] = Ended(done.returncode, json.loads(done.stdout), done.stderr, runs / "latest")
        return ended[script]

    return run_once


def first_finding(ended: Ended) -> dict[str, Any]:
    """Return the first finding of a campaign that has some."""
    return next(finding for one in ended.result["file_systems"] for finding in one["findings"])


def faulted(events: tuple[Event, ...]) -> list[TrialFinished]:
    """Return the trials in which the power was cut."""
    finished = [event for event in events if isinstance(event, TrialFinished)]
    return [event for event in finished if event.outcome.trial.kind is TrialKind.FAULTED]


def test_a_durable_saver_loses_nothing(run: Callable[[Path], Ended], kinds: str) -> None:
    """On every file system all cuts land, every state is in the model's set, and every run ends with the same bits."""
    ended = run(DURABLE)
    assert (ended.status, ended.result["verdict"], ended.result["error"]) == (0, "pass", ""), ended.said
    assert [one["file_system"] for one in ended.result["file_systems"]] == kinds.split(",")
    for one in ended.result["file_systems"]:
        assert (one["verdict"], one["cuts"], one["findings"], one["model_lacks"]) == ("pass", CUTS, [], [])
        assert one["nothing_lost"] > 0  # right after an acknowledgement at least
        assert one["model_states"]["least"] == "1"  # right after an acknowledgement there is but one
        assert one["states_distinct"] > 1
    cuts = [one["nothing_lost"] for one in ended.result["file_systems"]]
    assert sum(cuts) < len(cuts) * CUTS  # some are in the middle of a save


def test_a_saver_that_syncs_no_folder_is_told_so(run: Callable[[Path], Ended]) -> None:
    """The file is synced, its new name is not: after the acknowledgement the old one is back."""
    ended = run(WITHOUT_FOLDER)
    assert (ended.status, ended.result["verdict"]) == (1, "fail"), ended.said
    found = [finding for one in ended.result["file_systems"] for finding in one["findings"]]
    lost = [finding for finding in found if finding["check"] in {"acknowledged_lost", "no_valid_checkpoint"}]
    assert any("fsync of the folder of ckpt.json is missing" in finding["detail"] for finding in lost), lost
    assert all("on a real" in finding["crash_point"] for finding in lost)


def test_a_saver_that_syncs_nothing_loses_its_checkpoints(run: Callable[[Path], Ended]) -> None:
    """Without any fsync no checkpoint is left, and the report names the missing call."""
    ended = run(WITHOUT_ANY)
    assert (ended.status, ended.result["verdict"]) == (1, "fail"), ended.said
    found = [finding for one in ended.result["file_systems"] for finding in one["findings"]]
    assert "no_valid_checkpoint" in {finding["check"] for finding in found}
    assert any("fsync of ckpt.json.tmp is missing" in finding["detail"] for finding in found), found
    assert [one["model_lacks"] for one in ended.result["file_systems"]] == [[]] * len(ended.result["file_systems"])


def test_what_is_recorded_of_a_cut(run: Callable[[Path], Ended], kinds: str) -> None:
    """Each trial has its proof, its file system, and a second life; the places are the same on every file system."""
    finished = [event.outcome for event in faulted(run(WITHOUT_ANY).events)]
    places: dict[str, list[str]] = {kind: [] for kind in kinds.split(",")}
    for outcome in sorted(finished, key=lambda outcome: outcome.trial.number):
        (point,) = outcome.trial.crash_points
        evidence = outcome.lives[0].evidence
        assert evidence is not None
        assert evidence.is_landed
        assert evidence.loss is not None
        assert [str(profile) for profile in evidence.loss.profiles] == [point.profile.partition(":")[0]]
        assert isinstance(outcome.cut, Cut)
        assert len(outcome.lives) == 2
        places[point.profile].append(f"{point.address} {point.variant}")
    assert len({tuple(each) for each in places.values()}) == 1
    assert len(places[kinds.split(",", maxsplit=1)[0]]) == CUTS


def test_nothing_of_images_is_kept(run: Callable[[Path], Ended]) -> None:
    """When a campaign is over its folder holds the result, and no image."""
    ended = run(WITHOUT_ANY)
    assert not list(ended.folder.rglob("image*"))
    assert json.loads((ended.folder / "result.json").read_text()) == ended.result


def test_a_finding_is_replayed_and_a_trial_is_run_from_its_specification(
    run: Callable[[Path], Ended], chaos_command: Path, tmp_path: Path
) -> None:
    """`chaos replay` and `chaos trial` cut the power at the same place again, and leave the files, but no image."""
    ended = run(WITHOUT_ANY)
    finding = first_finding(ended)

    def chaos(*words: str | Path) -> tuple[int, dict[str, Any]]:
        done = subprocess.run(
            [chaos_command, *words, "--json"], capture_output=True, check=False, text=True, timeout=DEADLINE_S
        )
        return done.returncode, json.loads(done.stdout)

    replays = (chaos(*finding["replay"].split()[1:]) for _ in range(REPLAYS))
    status, replayed = next((replay for replay in replays if replay[0]), (0, {}))
    assert status == 1
    assert replayed["findings"]
    assert replayed["lives"][0]["crash_point"] == finding["crash_point"]
    specification = ended.folder / "trials" / f"{finding['trial']:04d}" / "spec.json"
    status, outcome = chaos("trial", specification, "--out", tmp_path / "trial")
    assert (status, outcome["cut"]["lacking"]) == (0, "")
    assert (tmp_path / "trial" / "out").is_dir()
    assert not list((tmp_path / "trial").rglob("image*"))


def test_judging_again_comes_to_the_same_result(run: Callable[[Path], Ended], chaos_command: Path) -> None:
    """`chaos judge` works all of it out from the journal."""
    for script in (WITHOUT_ANY, DURABLE):
        ended = run(script)
        done = subprocess.run(
            [chaos_command, "judge", ended.folder.resolve(), "--json"],
            capture_output=True,
            check=False,
            text=True,
            timeout=DEADLINE_S,
        )
        assert done.returncode == ended.status
        assert json.loads(done.stdout) == ended.result


def test_a_state_that_the_model_lacks_is_a_fault_of_ours(
    run: Callable[[Path], Ended], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told by name in the report, and the exit status is 3 although every check passed."""
    ended = run(DURABLE)
    first = faulted(ended.events)[0]
    assert first.outcome.cut is not None
    cut = replace(first.outcome.cut, lacking="ckpt.json is missing")
    outcome = replace(first.outcome, cut=cut)
    events = tuple(TrialFinished(outcome=outcome) if event == first else event for event in ended.events)
    result = judge_cuts(events, ended.folder)
    assert result.verdict is Verdict.PASS
    assert [_exit_status(judge_cuts(ended.events, ended.folder)), _exit_status(result)] == [0, 3]
    (lacking,) = result.model_lacks
    assert lacking.endswith("the model lacks this state: ckpt.json is missing")
    print_powercuts(result, sys.stderr)
    said = capsys.readouterr().err
    assert "The model lacks this state: a fault of ours" in said
    assert "ckpt.json is missing" in said


def test_an_expected_failure_is_as_it_should_be(run: Callable[[Path], Ended]) -> None:
    """Exit status 0 where a scenario expects the failure that came, 1 where the expected failure did not come."""
    failed, passed = (judge_cuts(run(script).events, run(script).folder) for script in (WITHOUT_ANY, DURABLE))

    def expecting_failure(result: PowerCuts) -> int:
        return _exit_status(replace(result, expected=Verdict.FAIL, as_expected=result.verdict is Verdict.FAIL))

    assert [expecting_failure(failed), expecting_failure(passed)] == [0, 1]
    assert [_exit_status(failed), _exit_status(replace(passed, verdict=Verdict.INCONCLUSIVE))] == [1, 4]


def test_it_is_not_gone_on_with(run: Callable[[Path], Ended]) -> None:
    """`chaos run --continue` would draw other faults; it says what to type instead."""
    with pytest.raises(UsageError, match="power cuts") as caught:
        go_on(Path(), str(run(DURABLE).folder), SettingsLayer(), is_json=False, progress=sys.stderr)
    assert "chaos powercut" in caught.value.hint


# --- nothing leaks ----------------------------------------------------------------------------------------


def loop_files(folder: Path) -> list[str]:
    """Return the files below a folder that are behind a loop device of this machine, in whatever namespace."""
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # detached meanwhile
            found.append(path.read_text(encoding="utf-8"))
    return [name for name in found if str(folder) in name]


def mounts() -> str:
    """Return what is mounted in the first namespace of this machine, and in this process's own."""
    return "".join(Path(f"/proc/{who}/mounts").read_text(encoding="utf-8") for who in ("1", "self"))


def kill_a_worker_with_an_image(processes: list[psutil.Process], folder: Path) -> bool:
    """Send SIGKILL to a worker that has an image mounted; False where there is none just now."""
    for process in processes:
        with suppress(psutil.Error, OSError):
            is_worker = WORKER in process.cmdline()
            if is_worker and str(folder) in Path(f"/proc/{process.pid}/mounts").read_text(encoding="utf-8"):
                process.kill()
                return True
    return False


@pytest.mark.parametrize("kind", [str(kind) for kind in DEFAULT_KINDS if not kind.options])
@pytest.mark.parametrize(("victim", "status"), [("campaign", -signal.SIGKILL), ("worker", 3), ("ctrl-c", 130)])
def test_nothing_leaks_whoever_is_killed(
    kind: str,
    victim: str,
    status: int,
    kinds: str,
    chaos_command: Path,
    tmp_path: Path,
    eventually: Callable[..., bool],
    processes_with: Callable[[str], list[psutil.Process]],
) -> None:
    """Killed in the middle of a cut: no process, no mount, no loop device stays, and no image but of who was killed."""
    if kind not in kinds.split(","):
        pytest.skip(f"{kind} cannot be used here")
    runs = tmp_path / "runs"
    words = words_of(kind, runs, DURABLE, "--cuts", "100")
    environment = {**os.environ, "CAMPAIGN_UNDER_TEST": str(runs)}
    campaign = subprocess.Popen(
        [chaos_command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert eventually(lambda: len(loop_files(tmp_path)) > 0, within_s=PATIENCE_S)
        assert str(tmp_path) not in mounts()  # not even while it runs
        if victim == "worker":
            assert eventually(lambda: kill_a_worker_with_an_image(processes_with(str(runs)), tmp_path))
        else:
            campaign.send_signal(signal.SIGKILL if victim == "campaign" else signal.SIGINT)
        stdout, stderr = campaign.communicate(timeout=PATIENCE_S)
    finally:
        campaign.kill()
        campaign.wait()
    assert campaign.returncode == status, stderr
    assert eventually(lambda: not processes_with(str(runs)), within_s=PATIENCE_S), processes_with(str(runs))
    assert eventually(lambda: not loop_files(tmp_path), within_s=PATIENCE_S), loop_files(tmp_path)
    assert str(tmp_path) not in mounts()
    if victim != "campaign":
        assert not list(runs.rglob("image*"))
        result = json.loads(stdout)
        assert (result["verdict"], bool(result["error"])) == ("inconclusive", True)
        assert result["error"].partition("\n")[0] in stderr


# --- what is missing ----------------------------------------------------------------------------------------


def test_what_cannot_be_used_is_told_before_anything_is_run(chaos_command: Path, tmp_path: Path) -> None:
    """Without mkfs (or root) each file system is named with what to do; nothing is run, and the exit status is 3."""
    words = words_of("ext4,xfs", tmp_path / "runs", DURABLE)
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(
        [chaos_command, *words], capture_output=True, text=True, check=False, timeout=DEADLINE_S, env=environment
    )
    error = json.loads(done.stdout)
    assert (done.returncode, error["exit_status"]) == (3, 3)
    for words_said in ("ext4", "xfs", "cannot be used here"):
        assert words_said in error["error"]
    assert "apt-get install" in error["error"] or "root" in error["error"]
    assert not (tmp_path / "runs").exists()


def test_one_that_is_wrong_is_told_with_those_that_would_work(kinds: str, chaos_command: Path, tmp_path: Path) -> None:
    """An option that a file system does not know stops all of it; the hint is the list without it."""
    kind = kinds.split(",", maxsplit=1)[0]
    words = words_of(f"{kind},{kind}:nonsense", tmp_path / "runs", DURABLE)
    done = subprocess.run([chaos_command, *words], capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    error = json.loads(done.stdout)
    assert done.returncode == 3
    assert "nonsense" in error["error"]
    assert error["hint"] == f"these can be used: --fs {kind}"


def test_doctor_says_which_file_systems_can_be_used(kinds: str, chaos_command: Path) -> None:
    """A line for each kind, none of which is needed for anything else."""
    done = subprocess.run([chaos_command, "doctor", "--json"], capture_output=True, text=True, check=False, timeout=60)
    abilities = {ability["name"]: ability for ability in json.loads(done.stdout)["abilities"]}
    for kind in map(str, DEFAULT_KINDS):
        ability = abilities[f"chaos powercut --fs {kind}"]
        assert ability["is_there"] is (kind in kinds.split(","))
        assert not ability["is_needed"]
        assert ability["detail"]

"""`chaos diff`: what it prints, the one JSON object, and its exit statuses."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from chaos.cli import main as shell

HERE = Path(__file__).parent
DEADLINE_S = 60
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def chaos(chaos_command: Path, tmp_path: Path) -> Run:
    """Return a function that runs the installed command in a folder with two checkpoints `a` and `b`."""
    _save(tmp_path / "a")
    _save(tmp_path / "b")
    _save(tmp_path / "c", is_broken=True)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(chaos_command), *words], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )

    return run


def _save(folder: Path, *, is_broken: bool = False) -> None:
    """Save a folder as a trainer does; a broken one lost its moments, its generator and 30 steps."""
    folder.mkdir()
    weights = torch.arange(1.0, 13.0).reshape(3, 4) / 7
    moments = torch.zeros(3, 4) if is_broken else weights * 0.1
    save_file({"fc.weight": weights.half() if is_broken else weights}, folder / "model.safetensors")
    slot = {"exp_avg": moments, "step": torch.tensor(0.0 if is_broken else 30.0)}
    torch.save({"state": {0: slot}, "param_groups": [{"lr": 0.1, "params": [0]}]}, folder / "optimizer.pt")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 0 if is_broken else 30, "best": None}))
    if not is_broken:
        torch.save({"cpu": torch.arange(64, dtype=torch.uint8)}, folder / "rng_state.pth")


def _assert_snapshot(name: str, text: str) -> None:
    """Compare with the stored snapshot; where it is missing, store this one and fail."""
    path = HERE / "snapshots" / f"{name}.txt"
    text = re.sub(r"\([\d,]+ bytes\)", "(N bytes)", text)
    if not path.exists():
        path.write_text(text)
        pytest.fail(f"{path.name} was missing and is written now: read it")
    assert text == path.read_text()


def test_equal_checkpoints(chaos: Run) -> None:
    """Exit status 0, nothing on standard error, every component told to be equal."""
    ended = chaos("diff", "a", "b")
    assert (ended.returncode, ended.stderr) == (0, "")
    _assert_snapshot("diff_equal", ended.stdout)


def test_different_checkpoints(chaos: Run) -> None:
    """Exit status 1; readings, figures and first names."""
    ended = chaos("diff", "a", "c", "--limit", "1")
    assert (ended.returncode, ended.stderr) == (1, "")
    _assert_snapshot("diff_different", ended.stdout)


def test_json_is_one_object(chaos: Run) -> None:
    """Schema, verdict, components with figures, readings; and `equal` follows what is ignored."""
    ended = chaos("diff", "a", "c", "--json")
    found = json.loads(ended.stdout)
    assert (ended.returncode, ended.stderr, found["schema"], found["equal"]) == (1, "", 1, False)
    components = {component["name"]: component for component in found["components"]}
    moments = components["optimizer state: exp_avg"]
    assert (moments["tensors"], moments["tensors_differing"], moments["elements_differing"]) == (1, 1, 12)
    assert moments["largest_absolute"] == pytest.approx(12 / 70)
    assert components["generators"]["only_a"] == 1
    assert "B's exp_avg is all zero (in 1 of 1 tensor)" in found["readings"]
    ignoring = ("--ignore", "model*", "--ignore", "optimizer.pt/state.*", "--ignore", "rng_state*")
    ended = chaos("diff", "a", "c", "--json", *ignoring, "--ignore", "*/global_step")
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["equal"], found["ignored"], found["readings"]) == (0, True, 5, [])


def test_a_glob_without_a_match_is_a_sentence(chaos: Run) -> None:
    """It is said on standard error, once, and changes neither the report nor the exit status."""
    ended = chaos("diff", "a", "b", "--ignore", "optimiser.*", "--ignore", "model*")
    assert ended.returncode == 0
    assert ended.stderr == "Note: --ignore 'optimiser.*' matches no name in either of them.\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a", "nowhere"), "nowhere cannot be compared: missing"),
        (("a", "a/optimizer.pt"), "is a folder and"),
        (("a/model.safetensors", "short.safetensors"), "short.safetensors cannot be compared: it is cut short"),
        (("a",), "Missing argument 'B'"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(words: tuple[str, ...], said: str, chaos: Run, tmp_path: Path) -> None:
    """Exit status 2 and one sentence; as JSON, too."""
    (tmp_path / "short.safetensors").write_bytes(b"\x10\0\0")
    ended = chaos("diff", *words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    as_json = json.loads(chaos("diff", "--json", *words).stdout)
    assert as_json["exit_status"] == 2
    assert said in as_json["error"]


def test_help_says_what_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """The formats, the exit statuses and the options are there."""
    assert shell.main(["diff", "--help"]) == 0
    said = capsys.readouterr().out
    for word in ("safetensors", "torch.distributed", "Exit status: 0 equal", "--ignore", "--limit", "--json"):
        assert word in said


@pytest.mark.parametrize(("one", "two"), [({"a.b": 1}, {"a": {"b": 1}}), ((1, 2), [1, 2])])
def test_equal_says_that_containers_are_not_compared(one: object, two: object, chaos: Run, tmp_path: Path) -> None:
    """Structures whose leaves have the same names and bits are equal, and what that leaves out is said beside it."""
    torch.save(one, tmp_path / "one.pt")
    torch.save(two, tmp_path / "two.pt")
    ended = chaos("diff", "one.pt", "two.pt")
    assert ended.returncode == 0
    assert "not the kinds and the nesting of containers" in ended.stdout

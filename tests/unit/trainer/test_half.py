"""What half precision does to the logits of a finished run, measured by the trainer itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from trainer import half
from trainer.options import Options

Make = Callable[..., Options]
Live = Callable[..., list[str]]


@pytest.fixture
def words(options: Make, live: Live, text_file: Path) -> list[str]:
    """Return the command line that asks about a finished tiny run."""
    chosen = options()
    live(chosen)
    return ["--out", str(chosen.out), "--data", str(text_file)]


def test_logits_move_a_little(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON line: all held-out logits, of which some move, by little; the loss stays about the same."""
    assert half.main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["step"], told["logits"]) == (12, 16 * 8 * 256)
    assert 0 < told["mean"] < told["largest"] < 0.01
    assert told["loss"] == pytest.approx(told["half_loss"], abs=0.01)


def test_weights_that_are_half_everywhere_do_not_move_them(
    options: Make, live: Live, text_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the resume file holds the same rounded weights, no logit differs."""
    chosen = options(save="half")
    live(chosen)
    assert half.main(["--out", str(chosen.out), "--data", str(text_file)]) == 0
    assert json.loads(capsys.readouterr().out)["largest"] == 0


def test_a_step_that_only_one_file_has_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Weights of another step than the resume file's are no comparison of precision."""
    out = Path(words[1])
    (out / "weights.prev.pt").replace(out / "weights.pt")
    assert half.main(words) == 1
    assert "are not of the same step of the same run" in capsys.readouterr().err


def test_another_text_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The held-out text must be that of the run."""
    Path(words[3]).write_bytes(b"something else entirely. " * 100)
    assert half.main(words) == 1
    assert "was trained on another text" in capsys.readouterr().err


@pytest.mark.parametrize(("damage", "said"), [("missing", "is missing"), ("torn", "is damaged")])
def test_files_that_are_not_whole_are_a_sentence(
    words: list[str], capsys: pytest.CaptureFixture[str], damage: str, said: str
) -> None:
    """A file that is missing or damaged is named, and the exit status is 1."""
    path = Path(words[1]) / "resume.pt"
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:1000])
    assert half.main(words) == 1
    complaint = capsys.readouterr().err
    assert str(path) in complaint
    assert said in complaint

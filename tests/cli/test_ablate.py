"""What a user sees of `chaos ablate`: the report, and wrong usage as sentences before anything is run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

SNAPSHOT = Path(__file__).parent / "snapshots" / "ablate.txt"
DEADLINE_S = 200


def _run(command: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `chaos ablate` in a folder."""
    return subprocess.run(
        [str(command), "ablate", *words], cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def _masked(text: str) -> str:
    """Return a report with its figures and its run masked, and columns of any width."""
    text = re.sub(r"\S*\d{8}-\d{6}-[0-9a-f]{4}", "RUN", text)
    text = re.sub(r"^  (holds|NOT HERE) +", "  CLAIM       ", text, flags=re.MULTILINE)
    text = re.sub(r"(?<![A-Za-z0-9])[-+]?\d+(,\d{3})*(\.\d+)?(e-?\d+)?", "N", text)
    return re.sub(r" +$", "", re.sub(r" {2,}", "  ", text), flags=re.MULTILINE)


def test_report(chaos_command: Path, tmp_path: Path) -> None:
    """The table, how to read it, sizes, claims, the seed last; progress is on standard error."""
    words = ("--steps", "6", "--seed", "7", "--only", "intact", "--only", "optimizer", "--plot", "plot.svg")
    ended = _run(chaos_command, *words, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "seed 7"
    assert ended.stderr.startswith("6 steps at once, for each order of batches …\n")
    assert (tmp_path / "plot.svg").is_file()
    assert all(line == line.rstrip() for line in ended.stdout.splitlines())
    shown = _masked(ended.stdout)
    if not SNAPSHOT.exists():
        SNAPSHOT.write_text(shown, encoding="utf-8")
        pytest.fail("the snapshot was missing and has been written: read it, and run again")
    assert shown == SNAPSHOT.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--only", "optimiser"), "there is no row `optimiser`\n  Did you mean `optimizer`?"),
        (("--steps", "10", "--seam", "9"), "give a --seam of at most 8"),
        (("--plot", "plot.pdf"), "a plot is an .svg or a .png file"),
        (("--plot", "nowhere/plot.svg"), "there is no folder"),
        (("--steps", "2"), "2 is not in the range"),
    ],
)
def test_wrong_usage_is_a_sentence(chaos_command: Path, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """Exit status 2, what is wrong, what to give, and no run's folder."""
    ended = _run(chaos_command, *words, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert list(tmp_path.iterdir()) == []

"""Digests of a life's first steps: from the probe's records, or from words that a target wrote itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from chaos.early_stop import MOST_STEPS
from chaos.lives.step_digests import step_digests
from chaos.model import StepRecord


def told(path: Path, *records: StepRecord) -> Path:
    """Write the file of ticks that the probe would have written."""
    lines = (b"tick word%d %s\n" % (number, msgspec.json.encode(item)) for number, item in enumerate(records))
    path.write_bytes(b"interpreter\ntorch\n" + b"".join(lines))
    return path


def test_words_of_a_target_are_its_digests(tmp_path: Path) -> None:
    """A tick without a record has the digest that stands behind it, or none."""
    path = tmp_path / "ticks.log"
    path.write_bytes(b"interpreter\ntick a\ntick\ntick - \ntick b\n")
    assert step_digests(path, ()) == ("a", "", "", "b")
    path.write_bytes(b"interpreter\ntick\ntick\n")
    assert step_digests(path, ()) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"components": {"weights": "others", "data": "data1"}},
        {"components": {"weights": "weights0"}},
        {"batches": ("others",)},
        {"values": {"group.lr": (0.1,)}},
        {"rank": 1},
        {"optimizer": "SGD"},
    ],
)
def test_everything_that_a_step_depends_on_counts(tmp_path: Path, records: Any, changes: dict[str, Any]) -> None:
    """Another component, batch, value, rank or optimizer is another digest."""
    step = records.step(1)
    (one,) = step_digests(told(tmp_path / "one", step), ())
    (two,) = step_digests(told(tmp_path / "two", replace(step, **changes)), ())
    assert one != two


def test_a_generator_that_nobody_seeded_does_not_count(tmp_path: Path, records: Any) -> None:
    """Components that vary between uninterrupted runs are left out."""
    paths = []
    for name in ("one", "two"):
        step = records.step(1)
        paths.append(told(tmp_path / name, replace(step, components={**step.components, "rng.random": name})))
    one, two = paths
    assert step_digests(one, ("rng.random",)) == step_digests(two, ("rng.random",))
    assert step_digests(one, ()) != step_digests(two, ())


def test_a_step_that_was_not_digested_has_no_digest(tmp_path: Path, records: Any) -> None:
    """Data and generators alone do not say what a step will do; nor does a line that cannot be read."""
    path = told(tmp_path / "ticks", records.step(1), records.step(2, components={"data": "data2"}))
    with path.open("ab") as file:
        file.write(b"tick word {broken\n")
    first, *others = step_digests(path, ())
    assert first
    assert others == ["", ""]


def test_only_the_first_steps_are_read(tmp_path: Path, records: Any) -> None:
    """As many as twins are known by."""
    assert len(step_digests(told(tmp_path / "ticks", *records.steps()), ())) == MOST_STEPS

"""A tiny run that trains in milliseconds, for tests of the trainer that start no process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer import data, loop
from trainer.options import Options
from trainer.state import TrainState, fresh_state

TINY = {"dim": 16, "layers": 1, "heads": 2, "kv_heads": 1, "sequence": 8, "batch_size": 2}
SHORT = {"steps": 12, "save_every": 3, "warmup": 2, "epoch_batches": 5}


class Killed(BaseException):
    """Ends a life at once: not an Exception, so nothing in the trainer may catch it."""


@pytest.fixture(autouse=True)
def torch_settings() -> Iterator[None]:
    """Give torch's global settings back as they were."""
    threads, is_deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(is_deterministic)


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    """Return a file with 4,000 bytes of text in which each place is different."""
    path = tmp_path / "text.txt"
    path.write_bytes("".join(f"line {number} of the text\n" for number in range(200)).encode()[:4000])
    return path


@pytest.fixture
def options(tmp_path: Path, text_file: Path) -> Callable[..., Options]:
    """Return a maker of options for a tiny run in the folder `out`, with the changes asked for."""

    def make(**changes: Any) -> Options:
        """Return tiny options."""
        return Options(**{"out": tmp_path / "out", "data": text_file, **TINY, **SHORT, **changes})

    return make


@pytest.fixture
def make_state() -> Callable[[Options], TrainState]:
    """Return a maker of the state before the first update."""

    def make(chosen: Options) -> TrainState:
        """Return a fresh state in an existing folder."""
        loop.prepare(chosen)
        text = data.load_text(chosen)
        return fresh_state(chosen, text, len(data.split(text)[0]))

    return make


@pytest.fixture
def live(make_state: Callable[[Options], TrainState]) -> Callable[..., list[str]]:
    """Return what lives one life in this process, killed right after the line `killed_after`, and returns its lines."""

    def life(chosen: Options, killed_after: str = "") -> list[str]:
        """Return what the life printed."""
        state, lines = make_state(chosen), []

        def say(line: str) -> None:
            """Note the line, and end the life at the one asked for."""
            lines.append(line)
            if line == killed_after:
                raise Killed

        training, _ = data.split(data.load_text(chosen))
        try:
            loop.begin(state, say)
            loop.train(state, training, say)
        except Killed:
            pass
        return lines

    return life

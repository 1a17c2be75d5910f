"""Fixtures for the tests of checkpoints: an examiner with its child, and a small real training state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from chaos.checkpoints.process import Examiner


@pytest.fixture
def examiner() -> Iterator[Examiner]:
    """Give an examiner whose child is gone afterwards."""
    with Examiner(deadline_s=30.0) as one:
        yield one
        child = one._child
    assert child is None or child._process.returncode is not None


@pytest.fixture
def training_state() -> dict[str, Any]:
    """Give what a resume file holds: a model with buffers, AdamW after a step, generators, numbers and texts."""
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "generator": torch.get_rng_state(),
        "step": 3,
        "loss": float("nan"),
        "run": "a run",
        "none": None,
        "flags": (True, False),
    }

"""Imports run one way: the contracts of pyproject.toml hold for the package that is under test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import chaos

CONFIGURATION = Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize("contract", ["layers", "apart", "probe", "torch"])
def test_contract_is_kept(contract: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Layers are kept, trainer and harness stay apart, the probe stands alone, no supervisor imports torch."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(Path(chaos.__file__).parents[1])
    status = lint_imports(str(CONFIGURATION), limit_to_contracts=(contract,), no_cache=True, no_logo=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out

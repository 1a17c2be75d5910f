"""How much each check's findings weigh: the one place that says so."""

from __future__ import annotations

from chaos.model import CheckName, Severity

# Warnings describe what a team may have chosen knowingly; they fail a campaign only under `--strict`.
_WARNINGS = frozenset({CheckName.LEAKED_FILES, CheckName.UNSAFE_CHECKPOINT})


def severity_of(check: CheckName) -> Severity:
    """Return the severity of `check`'s findings."""
    return Severity.WARNING if check in _WARNINGS else Severity.ERROR

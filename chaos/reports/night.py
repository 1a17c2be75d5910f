"""The record of a nightly stress job, and its one table."""

from __future__ import annotations

from chaos.model import SCHEMA, Record, Verdict

_STATUS_WORDS = {0: "ok", 1: "FAILED", 2: "FAILED", 3: "BROKEN", 4: "INCONCLUSIVE"}


class Campaigned(Record, kw_only=True):
    """One campaign of the night; `run` is empty when its folder was not kept, `error` unless the harness failed."""

    scenario: str
    seed: int
    verdict: Verdict | None
    status: int
    kills_landed: int
    findings: tuple[str, ...]
    elapsed_s: float
    run: str = ""
    error: str = ""


class Night(Record, kw_only=True):
    """All campaigns of one night, in order. `not_run` are scenarios that the budget did not reach."""

    schema: int = SCHEMA
    seed: int
    budget_s: float
    elapsed_s: float
    status: int
    campaigns: tuple[Campaigned, ...]
    not_run: tuple[str, ...]


def night_in_words(night: Night) -> str:
    """Return the table, what was not reached, and the sum."""
    lines = [f"{'scenario':<20}{'seed':>12}{'kills':>7}{'time':>8}  {'verdict':<13}{'result':<14}findings"]
    lines += [_row(campaign) for campaign in night.campaigns]
    lines.append("")
    if night.not_run:
        lines.append(f"not reached within the budget: {', '.join(night.not_run)}")
    kills = sum(campaign.kills_landed for campaign in night.campaigns)
    bad = [campaign for campaign in night.campaigns if campaign.status]
    lines.append(
        f"{len(night.campaigns)} campaigns, {kills} kills, {len(bad)} not as expected, "
        f"in {night.elapsed_s:.0f} s of {night.budget_s:.0f} s"
    )
    lines += [f"kept: {campaign.run}" for campaign in bad if campaign.run]
    lines.append(f"seed {night.seed}")
    return "\n".join(lines)


def _row(campaign: Campaigned) -> str:
    """Return one campaign's line."""
    verdict = campaign.verdict or "none"
    word = _STATUS_WORDS.get(campaign.status, "FAILED")
    found = ", ".join(campaign.findings) or campaign.error.partition("\n")[0]
    return (
        f"{campaign.scenario:<20}{campaign.seed:>12}{campaign.kills_landed:>7}{campaign.elapsed_s:>7.0f}s"
        f"  {verdict:<13}{word:<14}{found}"
    ).rstrip()

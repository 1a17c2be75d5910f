"""What a campaign's coverage means, in words that promise no more than its kills show."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.coverage import Coverage
from chaos.model import LivesMode

_LEAST_KILLS = 4  # three or fewer leave everything open
_LIMITS = (
    "Kills are drawn by phase from the known points, not evenly over time, so this is not how often a kill at any "
    "moment does harm. It says nothing of points that are not known, of other machines, or of the loss of power."
)


def coverage_in_words(coverage: Coverage, mode: LivesMode) -> Iterator[tuple[str, str]]:
    """Yield labels and sentences: the points in saves by call, torn writes, kills that count apart, and the bound."""
    if coverage.by_call:
        yield "in saves", ", ".join(f"{call} {count.hit} of {count.known}" for call, count in coverage.by_call.items())
    if coverage.tears.known:
        tears = coverage.tears
        yield "torn", f"{tears.hit} of {tears.known} writes that can be torn were torn, at some page boundary"
    if coverage.kills_unmatched:
        yield "apart", _apart(coverage.kills_unmatched, mode)
    yield "bound", _bound(coverage)


def _apart(kills: int, mode: LivesMode) -> str:
    """Say why kills do not count as coverage."""
    count, place = ("1 kill counts", "its place") if kills == 1 else (f"{kills} kills count", "their places")
    if mode is LivesMode.POLLED:
        return f"{count} for no point: without interception a kill lands only near its point"
    return f"{count} for no point: a first life does not come to {place}, or nobody can tell which that would be in it"


def _bound(coverage: Coverage) -> str:
    """Say what the kills leave open, if none of them showed a failure."""
    kills, bound = coverage.kills_bounding, coverage.failure_bound
    if not kills:
        return "nothing is bounded: no kill landed in a lineage that ran to its end"
    if bound is None:
        return "nothing is bounded, since something was found"
    if kills < _LEAST_KILLS:
        return f"nothing is bounded: {kills} {'kill is' if kills == 1 else 'kills are'} too few"
    return (
        f"not one of {kills} kills broke a rule that was checked: at 95 % confidence, at most {100 * bound:.3g} % of "
        f"the kills drawn in the same way would (the rule of three, 3/{kills}). {_LIMITS}"
    )

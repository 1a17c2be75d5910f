"""`leaked_files`: the files that a completed lineage leaves do not grow with the number of its kills."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from chaos.checks.lineage import conclude, is_completed, of_role
from chaos.model import CheckName, CheckResult, FileRole, Outcome, Reference, Target, TrialKind, Violation
from chaos.roles import anywhere, compile_globs

_FEW_KILLS = 1
_MANY_KILLS = 3
# One file is no growth: a temporary of a fixed name may be left once and is written over by the next save.
_LEAST_GROWTH = 2
_LOGS = ("*.log", "events.*")
_LOG_LIKE = re.compile(r"(?i)log|event|metric|history|\.csv$|\.jsonl$")
_VARYING = re.compile(r"tmp[A-Za-z0-9_]{6,}|\d+")


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Compare the extra files of completed lineages after at most one kill and after three or more, by family."""
    _ = reference
    completed = [outcome for outcome in outcomes if is_completed(outcome)]
    control = [outcome for outcome in completed if outcome.trial.kind is TrialKind.CONTROL]
    usual = {path for outcome in control for path, _ in _files(outcome, target)}
    few = [outcome for outcome in completed if outcome.kills_landed <= _FEW_KILLS]
    many = [outcome for outcome in completed if outcome.kills_landed >= _MANY_KILLS]
    if not (control and many):
        reason = "this needs a completed control, and a completed lineage with three kills or more"
        return conclude(CheckName.LEAKED_FILES, 0, (), reason)
    after_few = _most(_extra_families(outcome, usual, target) for outcome in few)
    worst = max(many, key=lambda outcome: _growth(_extra_families(outcome, usual, target), after_few).total())
    growth = _growth(_extra_families(worst, usual, target), after_few)
    violations = (_violation(worst, growth, after_few),) if growth else ()
    return conclude(CheckName.LEAKED_FILES, len(many), violations, "")


def _files(outcome: Outcome, target: Target) -> list[tuple[str, str]]:
    """Return path and family of each file that is no checkpoint, final file or log, and not ignored."""
    state = outcome.lives[-1]
    named = [(path, _VARYING.sub("#", path)) for path in state.other_files]
    named += [(file.path, file.key) for file in of_role(state.crash_state, FileRole.TEMPORARY)]
    ignored = compile_globs(tuple(anywhere(glob) for glob in (*_LOGS, *target.ignore)))
    return [(path, family) for path, family in dict(named).items() if not ignored.fullmatch(path)]


def _extra_families(outcome: Outcome, usual: set[str], target: Target) -> Counter[str]:
    """Count the files beyond the control's by family of names, leaving out logs of which each life has one."""
    files = _files(outcome, target)
    total = Counter(family for _, family in files)
    extra = Counter(family for path, family in files if path not in usual)
    return Counter(
        {
            family: count
            for family, count in extra.items()
            if not (_LOG_LIKE.search(family) and total[family] == len(outcome.lives))
        }
    )


def _most(counts: Iterable[Counter[str]]) -> Counter[str]:
    """Return the largest count of each family."""
    most: Counter[str] = Counter()
    for count in counts:
        most |= count
    return most


def _growth(count: Counter[str], after_few: Counter[str]) -> Counter[str]:
    """Return the families that have become more than after one kill."""
    return Counter(
        {family: num for family, num in count.items() if num >= _LEAST_GROWTH and num > after_few.get(family, 0)}
    )


def _violation(outcome: Outcome, growth: Counter[str], after_few: Counter[str]) -> Violation:
    families = "; ".join(
        f"{family}: {num} after {outcome.kills_landed} kills, at most {after_few.get(family, 0)} after one or none"
        for family, num in sorted(growth.items())
    )
    return Violation(
        check=CheckName.LEAKED_FILES,
        trial=outcome.trial.number,
        life=outcome.lives[-1].number,
        detail=f"Files that the uninterrupted run does not leave grow with the number of kills: {families}.",
    )

"""Which part of its checkpoint a resumed run does not use: found from outside, where no probe saw its state; pure.

A lineage that ended with other bits is run again with the same kill; then one part of every whole checkpoint that the
killed life left is reset. If the run ends with the same (wrong) bits as before, the resume does not use that part.
Where every part is used, what is lost is not in the checkpoint. A control, with nothing reset, must end as before.

A reset after which the target fails shows nothing. Nor does one after which it ends with the reference's bits: it has
refused the changed checkpoint and begun anew. If all resets end alike, and not as before, they were refused, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from chaos.checks import exactness
from chaos.checks.lineage import is_completed, whole_checkpoints
from chaos.model import (
    CheckName,
    FaultKind,
    FileRole,
    FileState,
    Finding,
    Fingerprint,
    LifeEnd,
    Outcome,
    Reference,
    Target,
    Trial,
    TrialKind,
)

_MOST_PARTS: Final = 8
_KILLS: Final = frozenset({FaultKind.KILL, FaultKind.TORN_WRITE})
# What is so called is hardly ever what a resume forgets: it is tried last.
_WEIGHTS: Final = ("model", "weight", "param", "net", "module", "bias")
_REFUSED: Final = "the changed checkpoint seems to have been refused"

_Final = tuple[tuple[str, str], ...]


def next_fingerprints(
    reference: Reference, outcomes: Sequence[Outcome], target: Target, first_number: int
) -> tuple[Trial, ...]:
    """Return the trials to run next: the control of a diverged lineage, then, if it ended as before, the resets.

    None where no lineage diverged of which a probe has not told more already.
    """
    control = _control(outcomes)
    if control is None:
        diverged = _diverged(reference, outcomes, target)
        return () if diverged is None else (_again(diverged.trial, first_number, ""),)
    if control.reset is None or not _is_as_before(control, outcomes):
        return ()
    return tuple(
        _again(control.trial, number, part) for number, part in enumerate(_chosen(control.reset.parts), first_number)
    )


def fingerprint_of(reference: Reference, outcomes: Sequence[Outcome]) -> Fingerprint | None:
    """Return what the resets showed (None: nothing was run, or the control did not end as before)."""
    control = _control(outcomes)
    if control is None or control.reset is None or not _is_as_before(control, outcomes):
        return None
    before = _final(control)
    ends: dict[str, _Final] = {}
    unknown: dict[str, str] = {}
    for outcome in _resets(outcomes):
        problem = _problem(outcome, reference)
        if problem:
            unknown[outcome.trial.reset] = problem
        else:
            ends[outcome.trial.reset] = _final(outcome)
    used = [part for part, end in ends.items() if end != before]
    if len(used) > 1 and len({ends[part] for part in used}) == 1:
        unknown |= dict.fromkeys(used, _REFUSED)
        used = []
    unused = tuple(part for part, end in ends.items() if end == before)
    untried = len(set(control.reset.parts) - ends.keys() - unknown.keys())
    if not unused and not used:
        return None
    return Fingerprint(trial=control.trial.repeats, unused=unused, used=tuple(used), unknown=unknown, untried=untried)


def with_fingerprint(findings: Sequence[Finding], fingerprint: Fingerprint | None) -> tuple[Finding, ...]:
    """Add what was found out to the finding of the lineage that it is about, else to the first of its kind."""
    mine = [f for f in findings if f.check is CheckName.SILENT_DIVERGENCE and f.fault in _KILLS]
    if fingerprint is None or not mine:
        return tuple(findings)
    chosen = next((finding for finding in mine if finding.trial == fingerprint.trial), mine[0])
    told = replace(chosen, fingerprint=fingerprint)
    return tuple(told if finding is chosen else finding for finding in findings)


def in_words(fingerprint: Fingerprint) -> str:
    """Say in sentences what a resumed run does not use, or that it uses all that is there."""
    return " ".join(_sentences(fingerprint))


def _sentences(fingerprint: Fingerprint) -> Iterator[str]:
    """Yield what was done, what came of it, and what is not known."""
    yield f"Trial {fingerprint.trial} was run again with parts of its checkpoint reset to zero, one at a time."
    used, is_all = fingerprint.used, not (fingerprint.unknown or fingerprint.untried)
    if fingerprint.unused:
        names = " or ".join(_quoted(fingerprint.unused))
        them = "it" if len(fingerprint.unused) == 1 else "them"
        yield f"Resetting {names} in the checkpoint changes nothing: the resumed run does not use {them}."
    elif is_all:
        yield f"Every part of the checkpoint is used ({', '.join(_quoted(used))}): what is lost is not in it."
    else:
        yield (
            f"Of the parts that could be tried, each is used ({', '.join(_quoted(used))}): what is lost is not among "
            "them."
        )
    for part, reason in fingerprint.unknown.items():
        yield f"Of `{part}` nothing is known: {reason}."
    if fingerprint.untried:
        yield f"{fingerprint.untried} further part{'' if fingerprint.untried == 1 else 's'} not tried."


def _quoted(names: Iterable[str]) -> list[str]:
    """Return names in quotes."""
    return [f"`{name}`" for name in names]


def _control(outcomes: Iterable[Outcome]) -> Outcome | None:
    """Return the repetition with nothing reset."""
    mine = (outcome for outcome in outcomes if outcome.trial.kind is TrialKind.FINGERPRINT)
    return next((outcome for outcome in mine if not outcome.trial.reset), None)


def _resets(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the repetitions with a part reset, in their order."""
    mine = [o for o in outcomes if o.trial.kind is TrialKind.FINGERPRINT and o.trial.reset]
    return sorted(mine, key=lambda outcome: outcome.trial.number)


def _again(trial: Trial, number: int, part: str) -> Trial:
    """Return a trial that does the same once more, with a part reset."""
    repeats = trial.repeats or trial.number
    return replace(trial, number=number, kind=TrialKind.FINGERPRINT, repeats=repeats, reset=part)


def _diverged(reference: Reference, outcomes: Iterable[Outcome], target: Target) -> Outcome | None:
    """Return the shortest lineage that ended with other bits, has left a checkpoint to reset, and had no probe."""
    found = [o for o in outcomes if _can_be_examined(o) and exactness.check(reference, (o,), target).violations]
    return min(found, key=lambda outcome: (len(outcome.lives), outcome.trial.number), default=None)


def _can_be_examined(outcome: Outcome) -> bool:
    """Tell whether a lineage was killed as planned, resumed from something, and a probe shows no loss.

    Either there was none, or all that it saw is the reference's: then what was lost is not what steps are made with.
    """
    is_killed = outcome.trial.kind is TrialKind.FAULTED and outcome.trial.fault in _KILLS and _has_landed(outcome)
    if not is_killed or not is_completed(outcome):
        return False
    has_difference = any(life.step_records for life in outcome.lives)
    return not has_difference and bool(whole_checkpoints(outcome.lives[-2].crash_state))


def _has_landed(outcome: Outcome) -> bool:
    """Tell whether every planned kill has landed, and there is one."""
    return 0 < len(outcome.trial.crash_points) == outcome.kills_landed


def _is_as_before(control: Outcome, outcomes: Iterable[Outcome]) -> bool:
    """Tell whether the control ended with the bits of the lineage that it repeats."""
    before = next((outcome for outcome in outcomes if outcome.trial.number == control.trial.repeats), None)
    is_whole = before is not None and is_completed(control) and _has_landed(control) and bool(_final(control))
    return is_whole and before is not None and _final(before) == _final(control)


def _final(outcome: Outcome) -> _Final:
    """Return the final files of a lineage by their content."""
    return _contents(state for state in outcome.lives[-1].crash_state if state.role is FileRole.FINAL)


def _contents(files: Iterable[FileState]) -> _Final:
    """Return keys and digests."""
    return tuple(sorted((state.key, state.digest) for state in files))


def _problem(outcome: Outcome, reference: Reference) -> str:
    """Say why a reset shows nothing; empty where it shows something."""
    done, last = outcome.reset, outcome.lives[-1]
    if not _has_landed(outcome) or done is None:
        return "the kill did not come to the same place again"
    if done.problem:
        return f"it could not be reset ({done.problem})"
    if not done.changed:
        return "it is zero in the checkpoint already"
    if not is_completed(outcome):
        ended = last.end is LifeEnd.EXITED or last.end is LifeEnd.SIGNALLED
        return "the resumed run failed without it" if ended else "the resumed run did not end without it"
    if not _final(outcome):
        return "the resumed run left no final file without it"
    return _REFUSED if _final(outcome) == _contents(reference.final) else ""


def _chosen(parts: Sequence[str]) -> list[str]:
    """Return the parts to try, at most some: those with the names of weights last."""
    return sorted(parts, key=lambda part: (any(word in part.lower() for word in _WEIGHTS), part))[:_MOST_PARTS]

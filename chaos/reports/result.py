"""The object that `chaos run --json` prints and `result.json` keeps: a judgement and the facts of its campaign."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec
import xxhash

from chaos.checks.lineage import counterpart, is_completed, is_stopped
from chaos.coverage import Coverage
from chaos.explored import Explored
from chaos.model import (
    SCHEMA,
    CheckName,
    CheckStatus,
    FaultKind,
    FileState,
    Finding,
    LivesMode,
    Outcome,
    Phase,
    Record,
    Reference,
    Target,
    TrialKind,
    Verdict,
)
from chaos.settings import LivesKind
from chaos.steps import num_digested
from chaos.verdict import Judgement

_HOUR_S = 3600.0
_MOST_OUTSIDE = 50
_POLLED = (
    "Without interception, kills strike at step lines and by time: where exactly each one landed is not guaranteed, "
    "writes are neither torn nor all seen, and a replay may strike elsewhere. `chaos doctor` says why."
)
_NO_FSYNC = (
    "The target's fsync was answered without being carried out: this says nothing of the target, and a loss of power "
    "that shows nothing here says that nothing would be found."
)


class CampaignFacts(Record, kw_only=True):
    """What a campaign was, apart from what was seen: seed, names, how long it took.

    `run_dir` is the run's folder as the user may type it; `claim` the sentence that the scenario tests.
    """

    seed: int
    run_name: str
    run_dir: str
    target: Target
    scenario: str = ""
    claim: str = ""
    mode: LivesMode = LivesMode.INTERCEPTED
    lives: LivesKind = LivesKind.FRESH
    repeated: int = 0
    without_fsync: bool = False
    elapsed_s: float


class ProbeFacts(Record, kw_only=True):
    """What the probe saw: of how many optimizer steps there are records, and how many of these hold digests of all.

    `reference_…` are of the first uninterrupted run, `lives_…` of all lives after the references; the others were left
    out in part, to stay within the budget. `not_compared` are components that the two references do not agree on.
    """

    reference_steps: int = 0
    reference_digested: int = 0
    lives_steps: int = 0
    lives_digested: int = 0
    not_compared: tuple[str, ...] = ()


class ReferenceFacts(Record, kw_only=True):
    """What the uninterrupted runs were: `seconds` is the time of one of them, `final_digest` covers all final files.

    `varying_leaves` names, for each final file, what differs between the two runs and was left out of the comparison.
    """

    deterministic: bool
    seconds: float
    final_digest: str
    total_steps: int = 0
    num_saves: int = 0
    differing_tensors: tuple[str, ...] = ()
    varying_leaves: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Result(Record, kw_only=True):
    """The whole campaign for a machine to read; the keys are a contract.

    `verdicts` has one for each kind of fault, judged by itself; `verdict` is the gravest of them. `kills_requested` and
    the other counts of kills are of faults of all kinds. `checks` gives each check's status, `not_run` the reasons of
    those that were not run, `inconclusive` the sentences that say what was not proven. `probe` is what was seen of the
    optimizer's steps. `verified_kills` counts landed
    kills whose lineage ran to its end and was compared; those of the `recoveries_stopped_early` are none. `coverage`
    says which of the known crash points these kills were, and what they bound if nothing was found. `lives` says how
    lives were started after the references, `trials_repeated` how many trials of a warm campaign were run again with
    fresh lives. `outside_writes` are paths outside of the output folder that some life wrote to, at most fifty, sorted.
    `exploration` is what `chaos explore` enumerated (None: this was no exploration); in JSON its keys are the result's.
    `not_guaranteed` says what a verdict in this mode leaves open, `error` what broke the campaign off before its end.
    """

    schema: int = SCHEMA
    verdict: Verdict
    verdicts: dict[FaultKind, Verdict] = msgspec.field(default_factory=dict)
    as_expected: bool
    expected: Verdict
    strict: bool
    seed: int
    scenario: str
    claim: str
    target: str
    checkpoints: tuple[str, ...]
    final: tuple[str, ...]
    mode: LivesMode
    lives: LivesKind = LivesKind.FRESH
    trials_repeated: int = 0
    kills_requested: int
    kills_landed: int
    kills_by_phase: dict[Phase, int]
    landed_by_fault: dict[FaultKind, int] = msgspec.field(default_factory=dict)
    kills_unreached: int
    coverage: Coverage = Coverage()
    trials: int
    trials_discarded: int = 0
    findings: tuple[Finding, ...]
    checks: dict[CheckName, CheckStatus]
    not_run: dict[CheckName, str]
    inconclusive: tuple[str, ...]
    reference: ReferenceFacts
    probe: ProbeFacts = ProbeFacts()
    elapsed_s: float
    verified_kills: int
    verified_kills_per_hour: float
    recoveries_stopped_early: int = 0
    run_dir: str
    outside_writes: tuple[str, ...] = ()
    not_guaranteed: tuple[str, ...] = ()
    error: str = ""
    exploration: Explored | None = None


def build_result(
    judgement: Judgement,
    facts: CampaignFacts,
    reference: Reference,
    outcomes: tuple[Outcome, ...],
    coverage: Coverage,
) -> Result:
    """Put together the result; `outcomes` are those of the control and of the faulted trials."""
    verified = verified_kills(reference, outcomes)
    return Result(
        verdict=judgement.verdict,
        verdicts=judgement.verdicts,
        as_expected=judgement.as_expected,
        expected=judgement.expect.verdict,
        strict=judgement.is_strict,
        seed=facts.seed,
        scenario=facts.scenario,
        claim=facts.claim,
        target=shlex.join(facts.target.command),
        checkpoints=facts.target.checkpoints,
        final=facts.target.final,
        mode=facts.mode,
        kills_requested=judgement.kills_requested,
        kills_landed=judgement.kills_landed,
        kills_by_phase=judgement.kills_by_phase,
        landed_by_fault=judgement.landed_by_fault,
        kills_unreached=sum(len(outcome.unreached) for outcome in outcomes),
        coverage=coverage,
        trials=len(outcomes),
        findings=judgement.findings,
        checks={result.check: result.status for result in judgement.checks},
        not_run={result.check: result.reason for result in judgement.checks if result.status is CheckStatus.NOT_RUN},
        inconclusive=judgement.inconclusive,
        reference=_reference_facts(reference),
        probe=_probe_facts(reference, outcomes),
        elapsed_s=facts.elapsed_s,
        verified_kills=verified,
        verified_kills_per_hour=round(verified * _HOUR_S / facts.elapsed_s, 1) if facts.elapsed_s > 0 else 0.0,
        recoveries_stopped_early=len({outcome.trial.number for outcome in outcomes if is_stopped(outcome)}),
        run_dir=facts.run_dir,
        outside_writes=outside_writes((*reference.outcomes, *outcomes)),
        lives=facts.lives,
        trials_repeated=facts.repeated,
        not_guaranteed=tuple(_open_questions(facts)),
    )


def _open_questions(facts: CampaignFacts) -> Iterator[str]:
    """Yield what a verdict in this mode leaves open."""
    if facts.mode is LivesMode.POLLED:
        yield _POLLED
    if facts.without_fsync:
        yield _NO_FSYNC
    if facts.lives is LivesKind.WARM:
        times = "once" if facts.repeated == 1 else f"{facts.repeated} times"
        yield (
            "Lives were forked from a warm template, which hides what only a start shows (the README lists it); "
            f"a trial was run again with fresh lives {times}, and it agreed."
        )


def verified_kills(reference: Reference, outcomes: tuple[Outcome, ...]) -> int:
    """Count the landed kills of faulted lineages that ran to their end and whose final bits could be compared."""
    if not reference.deterministic:
        return 0
    return sum(
        outcome.kills_landed
        for outcome in outcomes
        if outcome.trial.kind is TrialKind.FAULTED and is_completed(outcome) and _is_compared(reference, outcome)
    )


def outside_writes(outcomes: tuple[Outcome, ...]) -> tuple[str, ...]:
    """Return the paths outside of the output folder that any life wrote to, sorted, at most `_MOST_OUTSIDE`."""
    paths = {path for outcome in outcomes for life in outcome.lives for path in life.outside_writes}
    return tuple(sorted(paths)[:_MOST_OUTSIDE])


def _is_compared(reference: Reference, outcome: Outcome) -> bool:
    """Tell whether every final file of the reference was there to be compared (none at all: nothing was)."""
    state = outcome.lives[-1].crash_state
    return bool(reference.final) and all(counterpart(file, state) is not None for file in reference.final)


def final_digest(files: tuple[FileState, ...]) -> str:
    """Return the digest over all final files: a single one's own, else one over keys and digests (none: empty)."""
    if len(files) == 1:
        return files[0].digest
    lines = sorted(f"{file.key}\0{file.digest}\n" for file in files)
    return xxhash.xxh3_128_hexdigest("".join(lines).encode()) if lines else ""


def to_json(result: Result) -> str:
    """Return the result as one line of JSON, numbers as numbers, no trailing newline."""
    fields = msgspec.structs.asdict(result)
    exploration = fields.pop("exploration")
    if exploration is not None:
        del fields["coverage"]  # of kills, and there were none
        fields |= msgspec.structs.asdict(exploration)
    return msgspec.json.encode(fields).decode()


def from_json(text: str | bytes) -> Result:
    """Read a result back; raises `msgspec.ValidationError` where the text is no such object."""
    fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    explored = {name: fields.pop(name) for name in Explored.__struct_fields__ if name in fields}
    result = msgspec.json.decode(msgspec.json.encode(fields), type=Result)
    if not explored:
        return result
    exploration = msgspec.json.decode(msgspec.json.encode(explored), type=Explored)
    return msgspec.structs.replace(result, exploration=exploration)


def _probe_facts(reference: Reference, outcomes: tuple[Outcome, ...]) -> ProbeFacts:
    """Count what the probe saw."""
    counts = [num_digested(life, reference.steps) for outcome in outcomes for life in outcome.lives]
    return ProbeFacts(
        reference_steps=len(reference.steps),
        reference_digested=sum(record.is_digested for record in reference.steps),
        lives_steps=sum(steps for steps, _ in counts),
        lives_digested=sum(digested for _, digested in counts),
        not_compared=reference.unsteady,
    )


def _reference_facts(reference: Reference) -> ReferenceFacts:
    profile = reference.profile
    final = {file.key for file in reference.final}
    return ReferenceFacts(
        deterministic=reference.deterministic,
        seconds=round(reference.seconds, 3),
        final_digest=final_digest(reference.final),
        total_steps=profile.total_steps,
        num_saves=len(profile.saves),
        differing_tensors=reference.differing_tensors,
        varying_leaves={key: names for key, names in reference.varying_leaves.items() if key in final},
    )

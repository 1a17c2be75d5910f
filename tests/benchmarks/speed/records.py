"""What the benchmark measures and reports: frozen records, which `--json` prints as they are."""

from __future__ import annotations

from enum import StrEnum

from chaos.model import Record

SCHEMA = 1
# What every tool must say of a script that has no fault.
FAULTLESS = "pass"
# What it may say when its budget ended before all was judged.
UNDECIDED = "inconclusive"


class Tool(StrEnum):
    """What can be measured; `--skip` takes these names."""

    PLAIN = "plain-loop"
    PEER = "ckpt-chaos"
    FRESH = "chaos-run-fresh"
    WARM = "chaos-run-warm"
    EXPLORE = "chaos-explore"
    POWER = "chaos-explore-power-loss"
    SLOWDOWN = "slow-down"
    DIFF = "chaos-diff"
    PROBE = "probe"


class Status(StrEnum):
    """What became of a measurement; `not_available` is no failure: the tool or the mode is not there."""

    MEASURED = "measured"
    NOT_AVAILABLE = "not_available"
    FAILED = "failed"


class Counted(StrEnum):
    """What one unit of a row is: see `note` of the row for what the tool itself calls it."""

    KILLS = "verified kills"
    EVENTS = "crash events"
    STATES = "judged states"


class Script(Record, kw_only=True):
    """The sizes of the training script: steps in all, steps between two saves, width of its layers, rows of a batch."""

    steps: int
    every: int
    width: int
    batch: int

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options of the script that ask for these sizes."""
        return ("--steps", str(self.steps), "--every", str(self.every), *self.shape)

    @property
    def shape(self) -> tuple[str, ...]:
        """Return the options that say how large a step is."""
        return ("--width", str(self.width), "--batch", str(self.batch))

    @property
    def num_parameters(self) -> int:
        """Return the number of parameters of its two layers, the one between being twice as wide."""
        return 4 * self.width**2 + 3 * self.width


class Sizes(Record, kw_only=True):
    """How much is measured: the benchmark's options, but for where tools are."""

    jobs: int
    peer_jobs: int
    plain_kills: int
    fresh_kills: int
    warm_kills: int
    budget_s: int
    pairs: int
    limit_s: float
    seed: int
    tiny: Script
    large: Script
    diff_bytes: int = 0
    probe_rounds: int = 0
    probed: tuple[Script, ...] = ()


class Machine(Record, kw_only=True):
    """Where and when it was measured; `load` is the load average over the minute before the start."""

    date: str
    cores: int
    cpu: str
    kernel: str
    python: str
    versions: dict[str, str]
    load: float


class Floor(Record, kw_only=True):
    """The least that a kill can cost: a fork of a warm process that does `redone_steps` steps, until it was reaped."""

    forks: int
    redone_steps: int
    fork_s: float
    total_s: float


class Shares(Record, kw_only=True):
    """Where a campaign's worker time went, as shares of it that add up to 1.

    `target` is the lives of the killed lineages, from start to kill or end, with the looks at acknowledgements;
    `trials` the rest of those trials: looking at what each life left, comparing; `references` the references, control,
    canary and whatever else is no killed lineage; `rest` all else: starting processes, the journal, judging, workers
    that had nothing to do.
    """

    target: float
    trials: float
    references: float
    rest: float


class Measurement(Record, kw_only=True):
    """What one tool did. `number` units of `counted` in `elapsed_s`, from its start to its end, references and all.

    `points` is the number of different crash points struck, None where nobody can tell. `workers` is how many were at
    work side by side. `is_partial` tells that the budget ended it before all was judged. `verdict` is the tool's own
    word on the script. `note` says what is counted, or why nothing was measured.
    """

    tool: Tool
    status: Status
    counted: Counted = Counted.KILLS
    number: int = 0
    elapsed_s: float = 0.0
    points: int | None = None
    workers: int = 1
    is_partial: bool = False
    verdict: str = ""
    note: str
    shares: Shares | None = None

    @property
    def is_failure(self) -> bool:
        """Tell whether the tool is there and broke, or found fault with the script; out of budget is neither."""
        if self.status is Status.MEASURED:
            return self.verdict != FAULTLESS and not (self.is_partial and self.verdict == UNDECIDED)
        return self.status is Status.FAILED


class Row(Record, kw_only=True):
    """A measurement and what follows from it; None where it does not.

    `cost_s` are seconds of one worker for each unit, `floors` the same as a multiple of the floor; `rate_ratio` and
    `points_ratio` compare with ckpt-chaos's row.
    """

    measurement: Measurement
    per_hour: float | None = None
    cost_s: float | None = None
    floors: float | None = None
    rate_ratio: float | None = None
    points_ratio: float | None = None


class Spread(Record, kw_only=True):
    """Ratios of pairs of runs: 1.02 is two per cent slower."""

    median: float
    lowest: float
    lower_quartile: float
    upper_quartile: float
    highest: float


class Slowdown(Record, kw_only=True):
    """How much slower the larger script is under interception, by its own clock.

    `training` compares the time from the first step to the last, `whole` that from the start of the process; both with
    every watched call held and carried out by the supervisor. `training_with_looks` also lets the supervisor look at
    the checkpoints at each acknowledgement, with the target held meanwhile, as a campaign does. `steps` and `saving`
    are the two parts of `training`: what lies outside of saves, and the saves. `saving_share` is the share of saving in
    the plain runs' training time, `noise` by how much two plain runs in a row differ (medians both); `calls` the number
    of operations held in one life.
    """

    pairs: int
    training: Spread
    steps: Spread
    saving: Spread
    training_with_looks: Spread
    whole: Spread
    saving_share: float
    noise: float
    plain_training_s: float
    calls: int


class DiffSpeed(Record, kw_only=True):
    """How long it takes to compare two checkpoints of `size_bytes` each in one format, files in the page cache.

    Seconds are of whole processes, the best of some runs: `cmp` on two equal files (None where there is none), `chaos
    diff` on the same, and on two that differ in every element. `peak_bytes` is the most memory that any process had.
    """

    format: str
    size_bytes: int
    cmp_s: float | None
    equal_s: float
    different_s: float
    peak_bytes: int


class BudgetCost(Record, kw_only=True):
    """What the probe costs at one budget, in percent of the step time: ratios of step times to those without it.

    `digested` is the share of the steps whose record has weights, gradients and state, `recorded` of those that have at
    least the data, the generators and the settings; the others have a number only. Both are medians.
    """

    percent: float
    slowdown: Spread
    digested: float
    recorded: float


class ProbeCost(Record, kw_only=True):
    """What the probe costs in one script, without interception; `plain_step_s` is a step without it (median).

    All of it is the processor's time, not the clock's.
    """

    script: Script
    rounds: int
    plain_step_s: float
    budgets: tuple[BudgetCost, ...]


class Report(Record, kw_only=True):
    """The whole benchmark. `no_slowdown`, `no_differences` and `no_probing` say why there is none of those figures."""

    schema: int = SCHEMA
    machine: Machine
    sizes: Sizes
    floor: Floor
    rows: tuple[Row, ...]
    slowdown: Slowdown | None = None
    no_slowdown: str = ""
    differences: tuple[DiffSpeed, ...] = ()
    no_differences: str = ""
    probing: tuple[ProbeCost, ...] = ()
    no_probing: str = ""
    elapsed_s: float

    @property
    def has_failed(self) -> bool:
        """Tell whether something that is there could not be measured, or a tool found fault with the script."""
        return any(row.measurement.is_failure for row in self.rows)

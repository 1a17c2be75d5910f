"""The tables of a scenario file: which keys TOML may hold, of which types, and what each of them says.

The descriptions are what `chaos schema` prints. What a value means beyond its type is checked in `chaos.scenario`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from chaos.model import CheckName, FaultKind, Phase, Record, Target, Verdict

MAX_KILLS = 100_000
MAX_SEED = 2**63 - 1
MAX_DEADLINE_S = 7 * 86_400.0
DEFAULT_PHASES = {Phase.STARTUP: 0.05, Phase.STEP: 0.3, Phase.SAVE: 0.5, Phase.RECOVERY: 0.1, Phase.FINISH: 0.05}
DEFAULTS = Target(command=(), resume_command=(), checkpoints=(), final=())


def says(description: str) -> msgspec.Meta:
    """Return the annotation that describes a key in the JSON Schema."""
    return msgspec.Meta(description=description)


Words = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Kills = Annotated[int, msgspec.Meta(ge=1, le=MAX_KILLS)]
_Seed = Annotated[int, msgspec.Meta(ge=0, le=MAX_SEED)]
_Deadline = Annotated[float, msgspec.Meta(gt=0, le=MAX_DEADLINE_S)]
_Faults = Annotated[tuple["FaultSpec", ...], msgspec.Meta(min_length=1)]


class TargetTable(Record, kw_only=True):
    """The command under test and where its files are; `{out}` is a folder that each trial gets anew."""

    command: Annotated[
        Words,
        says(
            "The command that starts the training, as a list of words. `{out}` in it (or in `env` or `cwd`) is the "
            "output folder; it is empty when a lineage begins."
        ),
    ]
    resume_command: Annotated[
        tuple[str, ...],
        says("The command that starts it again after a kill. Default: `command`, which then has to resume by itself."),
    ] = ()
    no_save_command: Annotated[
        tuple[str, ...],
        says(
            "A command that trains the same without saving any checkpoint, and writes the same final files. With it, "
            "`saving_changes_training` is checked; without it, that check is not run."
        ),
    ] = ()
    checkpoints: Annotated[
        Words,
        says(
            "Globs of what the training resumes from, files or folders, each beginning with `{out}/`. `*` and `?` stay "
            "within one part of a path, `**` crosses parts."
        ),
    ]
    final: Annotated[
        Words,
        says(
            "Globs of the files that hold the result, each beginning with `{out}/`; they are compared bit by bit with "
            "those of the uninterrupted run. None of them may be a checkpoint too."
        ),
    ]
    ignore: Annotated[
        tuple[str, ...],
        says(
            "Globs of files in the output folder that are never judged, such as `*.log`; one without a slash matches "
            "in any folder."
        ),
    ] = ()
    step: Annotated[
        str,
        says("A regular expression that finds a step line in the output; its first group is the step's number."),
    ] = DEFAULTS.step
    saved: Annotated[
        str,
        says(
            "A regular expression that finds the line which says that a checkpoint was saved; if it has a group, that "
            "is the step's number."
        ),
    ] = DEFAULTS.saved
    verify: Annotated[
        tuple[str, ...],
        says(
            "A command that ends with exit status 0 if the checkpoint at `{path}` is whole. It is asked about each "
            "checkpoint, in place of what Ninelives can tell itself; name it for a format of your own."
        ),
    ] = ()
    deadline_s: Annotated[
        _Deadline | None,
        says(
            "How many seconds a life may take before it counts as hanging; ten times the uninterrupted run, but a "
            f"minute at least, where that is less. Default: {DEFAULTS.deadline_s:g}."
        ),
    ] = None
    env: Annotated[
        dict[str, str],
        says("Environment variables to set for the commands, beside those that `chaos` was started with."),
    ] = msgspec.field(default_factory=dict)
    cwd: Annotated[str, says("The folder to run the commands in. Default: the one that `chaos` was started in.")] = ""


class Schedule(Record, kw_only=True):
    """How many kills (None: as set elsewhere), and the share of them in each phase; the shares add up to 1."""

    kills: Annotated[
        _Kills | None, says("How many kills must land, or faults of each kind that is asked for. Default: 20.")
    ] = None
    phases: Annotated[
        dict[Phase, Share],
        says(
            "The share of the kills in each phase, adding up to 1: `startup` (before the first step), `step`, `save`, "
            "`recovery` (a later life before its first step), `finish` (after the last step)."
        ),
    ] = msgspec.field(default_factory=DEFAULT_PHASES.copy)


class FaultSpec(Record, kw_only=True):
    """One kind of fault that the campaign injects."""

    kind: Annotated[
        FaultKind,
        says(
            "What happens at a crash point: `kill` is a SIGKILL of the whole process tree, `torn_write` one inside a "
            "write at any byte, `power_loss` takes away what was not made durable, `disk_full` (ENOSPC), `io_error` "
            "(EIO) and `short_write` are answers that the target has to deal with, `bit_flip` damages a checkpoint "
            "after a kill."
        ),
    ]


class ExpectTable(Record, kw_only=True):
    """What a scenario expects: a verdict, and of a failure at least one of `findings` and none outside both lists."""

    verdict: Annotated[
        Verdict | None,
        says("The verdict that this scenario should come to. Default: the gravest of `verdicts`, or else `pass`."),
    ] = None
    verdicts: Annotated[
        dict[FaultKind, Verdict],
        says("The verdicts that single kinds of fault should come to, where they are to be told apart."),
    ] = msgspec.field(default_factory=dict)
    findings: Annotated[
        tuple[CheckName, ...], says("The checks of which at least one must fail, where a failure is expected.")
    ] = ()
    allow: Annotated[
        tuple[CheckName, ...], says("Further checks that may fail, where a failure is expected; no others may.")
    ] = ()

    @property
    def gravest(self) -> Verdict:
        """Return the gravest of the verdicts of single kinds of fault; `pass` where none is given."""
        given = self.verdicts.values()
        return next((verdict for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE) if verdict in given), Verdict.PASS)


class ScenarioTable(Record, kw_only=True):
    """A scenario of Ninelives, as it is written in TOML."""

    schema: Annotated[Literal[1], says("The version of this format.")]
    name: Annotated[str, says("What reports call the scenario. Default: the file's name without its ending.")] = ""
    claim: Annotated[str, says("One sentence that this scenario tests.")] = ""
    seed: Annotated[
        _Seed | None, says("The seed that the crash points are drawn from. Default: a new one for each run, printed.")
    ] = None
    target: Annotated[
        TargetTable | None, says("The command under test and its files. Default: the bundled trainer.")
    ] = None
    schedule: Annotated[Schedule, says("How many kills, and in which phases.")] = Schedule()
    fault: Annotated[_Faults | None, says("The kinds of fault to inject, one table each. Default: `kill`.")] = None
    expect: Annotated[ExpectTable, says("What should come out; by default, a pass.")] = ExpectTable()

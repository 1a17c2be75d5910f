"""What a replay showed, and how `chaos replay` prints it for people."""

from __future__ import annotations

from typing import TextIO

from chaos.model import SCHEMA, Finding, Record


class LifeComparison(Record, kw_only=True):
    """One life of the replay against the recorded one; digests are those of crash states (None: no such life)."""

    life: int
    crash_point: str
    recorded_digest: str | None
    replayed_digest: str | None

    @property
    def is_same(self) -> bool:
        """Tell whether both left the same crash state."""
        return self.recorded_digest == self.replayed_digest


class Replay(Record, kw_only=True):
    """What a replay showed: what is wrong with the trial now, and whether every life left what it left then."""

    schema: int = SCHEMA
    run: str
    trial: int
    is_same: bool
    lives: tuple[LifeComparison, ...]
    findings: tuple[Finding, ...]
    folder: str


def print_replay(replay: Replay, stream: TextIO) -> None:
    """Say life by life whether the crash states are the recorded ones, then what is wrong with the trial."""
    print(f"replay of {replay.run}/{replay.trial}", file=stream)
    for life in replay.lives:
        same = "the recorded crash state" if life.is_same else "ANOTHER crash state than recorded"
        print(f"  life {life.life}: {life.crash_point}\n    {same} ({life.replayed_digest})", file=stream)
    for finding in replay.findings:
        print(f"finding     {finding.check}: {finding.detail}", file=stream)
    number = len(replay.findings)
    wrong = "nothing is wrong with this trial now" if not number else f"{number} finding{'s' if number > 1 else ''}"
    again = "as it was recorded" if replay.is_same else "NOT as it was recorded"
    print(f"result      {wrong}; it went {again}\nkept in     {replay.folder}", file=stream)

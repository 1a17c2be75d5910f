"""What `chaos replay` prints for people."""

from __future__ import annotations

from typing import TextIO

from chaos.replaying import Replay


def print_replay(replay: Replay, stream: TextIO) -> None:
    """Say life by life whether the crash states are the recorded ones, then what is wrong with the trial."""
    print(f"replay of {replay.run}/{replay.trial}", file=stream)
    for life in replay.lives:
        same = "the recorded crash state" if life.is_same else "ANOTHER crash state than recorded"
        print(f"  life {life.life}: {life.crash_point}\n    {same} ({life.replayed_digest})", file=stream)
    for finding in replay.findings:
        print(f"finding     {finding.check}: {finding.detail}", file=stream)
    wrong = f"{len(replay.findings)} findings" if replay.findings else "nothing is wrong with this trial now"
    again = "as it was recorded" if replay.is_same else "NOT as it was recorded"
    print(f"result      {wrong}; it went {again}\nkept in     {replay.folder}", file=stream)

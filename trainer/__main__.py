"""The command `python -P -m trainer --out DIR`; the same command again resumes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from trainer.options import TrainerError, parse


def main(argv: Sequence[str] | None = None) -> int:
    """Train as `argv` asks and return the exit status: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted."""
    options = parse(argv)
    from trainer.loop import run  # imports torch, for which `--help` and usage errors need not wait

    try:
        run(options)
    except (TrainerError, OSError) as error:
        print(f"trainer: error: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print("trainer: interrupted; the same command goes on from the last save", file=sys.stderr, flush=True)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

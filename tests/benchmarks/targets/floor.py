"""The least that a kill can cost: fork a process that is warm, and do again the steps since the last save.

Prints one JSON object: the median seconds of a bare fork, and of a fork that does the steps, each until it was reaped.
"""

# ruff: noqa: T201 - the figures are printed

from __future__ import annotations

import argparse
import json
import os
import statistics
import time

import torch
from training import Training


def fork_s(training: Training, steps: int) -> float:
    """Return the seconds that a fork takes which does `steps` steps; raises RuntimeError where it ends badly."""
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for _ in range(steps):
                training.advance()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status:
        message = f"a fork ended with the wait status {status}"
        raise RuntimeError(message)
    return time.perf_counter() - started


def main() -> None:
    """Warm up as a template does, then fork again and again."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True, help="Steps that each fork does.")
    parser.add_argument("--forks", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)  # a pool of threads would not survive the fork
    training = Training(options.width, options.batch)
    training.advance()
    fork_s(training, options.steps)  # the first one pays for what later ones find done
    pairs = [(fork_s(training, 0), fork_s(training, options.steps)) for _ in range(options.forks)]
    bare, with_steps = zip(*pairs, strict=True)
    print(json.dumps({"fork_s": statistics.median(bare), "total_s": statistics.median(with_steps)}))


if __name__ == "__main__":
    main()

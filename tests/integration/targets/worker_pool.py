"""Send objects of the main module to worker processes and back: `python worker_pool.py OUT METHOD`."""

# ruff: noqa: ANN001, ANN201, T201 - written as a user writes

import multiprocessing
import sys
from dataclasses import dataclass, fields


@dataclass
class Box:
    """A class of the main module."""

    value: int = 0


def work(box):
    """Return another box."""
    return Box(box.value + 1)


if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
        print(*(box.value for box in pool.map(work, [Box(1), Box(2)])))
    print(fields(Box)[0].type)

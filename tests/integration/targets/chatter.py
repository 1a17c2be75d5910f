"""Print a lot and change many files: `python chatter.py OUT LINES FILES`; one line is longer than a look takes in."""


# ruff: noqa: PTH118, T201 - written as a user writes

import os
import sys

out, lines, files = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("x" * 1_500_000)
for number in range(files):
    os.close(os.open(os.path.join(out, f"file{number}"), os.O_WRONLY | os.O_CREAT))
for step in range(1, lines + 1):
    print(f"step {step} loss 1")
fd = os.open(os.path.join(out, "state"), os.O_WRONLY | os.O_CREAT)
for _ in range(lines):
    os.write(fd, b"x" * 10)

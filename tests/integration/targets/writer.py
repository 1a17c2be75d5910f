"""Write for ever, and leave a mark without any call if a write fails: `python writer.py OUT`."""

# ruff: noqa: PTH118, PTH123 - written as a user writes

import mmap
import os
import sys

out = sys.argv[1]
with open(os.path.join(out, "failed"), "w+b") as file:
    file.write(b"\0")
    file.flush()
    mark = mmap.mmap(file.fileno(), 1)
fd = os.open(os.path.join(out, "state"), os.O_WRONLY | os.O_CREAT)
while mark[0] == 0:
    try:
        os.pwrite(fd, b"x", 0)
    except OSError:
        mark[0] = 1
while True:
    pass

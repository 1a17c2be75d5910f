"""Change files with plain calls, and say what each call came to: `python told.py OUT`."""

# ruff: noqa: ANN001, ANN002, ANN201, PTH118, T201 - written as a user writes

import errno
import os
import sys

out = sys.argv[1]
SIZE = 10_000


def tell(call, *arguments):
    """Make a call and print its name with its result, or with the name of its error."""
    try:
        result = call(*arguments)
    except OSError as error:
        print(call.__name__, errno.errorcode[error.errno], flush=True)
        return None
    print(call.__name__, result if call is os.write else "ok", flush=True)
    return result


def at(name):
    """Return the path of a name in the folder."""
    return os.path.join(out, name)


for number in range(1, 4):
    fd = tell(os.open, at("c.tmp"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    if fd is None:
        continue
    tell(os.write, fd, bytes([number]) * SIZE)
    tell(os.fsync, fd)
    os.close(fd)
    tell(os.replace, at("c.tmp"), at("c.bin"))
for folder in ("a", "b"):
    tell(os.mkdir, at(folder))
tell(os.symlink, "c.bin", at("latest"))
tell(os.link, at("c.bin"), at("copy"))
tell(os.unlink, at("copy"))
tell(os.rmdir, at("b"))

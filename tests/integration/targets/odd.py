"""Do what few programs do: `python odd.py OUT HOW`. Exit status 0 means that all was as it should be."""

# ruff: noqa: ANN001, ANN201, ANN202, PT017, PTH101, PTH102, PTH103, PTH118, PTH120, PTH123, S103, S607, T201 - written as a user writes

import ctypes
import errno
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading

out, how = sys.argv[1], sys.argv[2]


def at(name):
    """Return the path of a name in the folder."""
    return os.path.join(out, name)


def timer():
    """Be interrupted a thousand times a second; print how many calls of the C library failed with EINTR."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(at("state"), os.O_WRONLY | os.O_CREAT)  # Python itself makes an interrupted call again, uncounted
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    interrupted = sum(libc.write(fd, b"x" * 64, 64) < 0 for _ in range(int(sys.argv[3])))
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("interrupted", interrupted)
    sys.exit(1 if interrupted else 0)


def flood():
    """Write long lines and then short ones."""
    for _ in range(4):
        os.write(1, b"x" * 2000 + b"\n")
    for step in range(1, 4):
        os.write(1, f"step {step}\n".encode())


def digested():
    """Report steps with digests, as the probe does, and say on standard output that one is done."""
    for word in sys.argv[3].split(","):
        with open(os.environ["NINELIVES_TICKS"], "ab", buffering=0) as ticks:
            ticks.write(f"tick {word}\n".encode())
        print("step done", flush=True)


def filtered():
    """Install a filter of one's own (which refuses mkdir), and go on saving."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = int(sys.argv[3])
    program = struct.pack(
        "<HBBIHBBIHBBIHBBI", 0x20, 0, 0, 0, 0x15, 0, 1, number, 0x06, 0, 0, 0x50001, 0x06, 0, 0, 0x7FFF0000
    )
    buffer = ctypes.create_string_buffer(program, len(program))
    description = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", 4, ctypes.addressof(buffer)))
    assert libc.prctl(22, 2, description) == 0, ctypes.get_errno()
    for name, flags in (("state", os.O_WRONLY | os.O_CREAT), ("state", os.O_WRONLY | os.O_TRUNC)):
        os.close(os.open(at(name), flags))
    folder = os.open(out, os.O_RDONLY)
    try:
        os.mkdir("folder", dir_fd=folder)
    except PermissionError:
        return
    raise AssertionError("the own filter did not refuse")


def everything_closed():
    """Save with every descriptor closed, standard output and all."""
    os.closerange(0, 4096)
    fd = os.open(at("state"), os.O_WRONLY | os.O_CREAT)
    assert fd == 0
    os.write(fd, b"x")


def printed_by_others():
    """Let other programs print in all the ways they do: plain writes, sendfile, copies from file to file."""
    with open(at("state"), "wb") as file:
        file.write(b"step 1 from a file\n")
    subprocess.run(["cat", at("state")], check=True)
    source = os.open(at("state"), os.O_RDONLY)
    try:
        os.sendfile(1, source, 0, 100)
    except OSError as error:
        assert error.errno == errno.EINVAL  # sendfile(2): the output is open for appending
    os.writev(1, [b"one ", b"two\n"])
    os.truncate("/dev/stdout", os.fstat(1).st_size)


def folder_removed():
    """Remove the whole output folder."""
    shutil.rmtree(out)


def folder_locked():
    """Forbid everything in a folder."""
    os.mkdir(at("locked"))
    os.chmod(at("locked"), 0)


def another_user():
    """Go on as another user, who may not write here."""
    os.mkdir(at("mine"))
    os.chmod(out, 0o755)
    os.setgid(65534)
    os.setuid(65534)
    for attempt in (lambda: os.mkdir(at("theirs")), lambda: os.open(at("state"), os.O_WRONLY | os.O_CREAT)):
        try:
            attempt()
        except PermissionError:
            continue
        raise AssertionError("another user may write here")


def another_root():
    """Go on below another root, where the same names mean other files."""
    os.mkdir(at("below"))
    os.close(os.open(at("state"), os.O_WRONLY | os.O_CREAT))
    os.chroot(at("below"))
    os.chdir("/")
    os.makedirs("/" + os.path.dirname(out))
    os.mkdir(out)
    os.close(os.open(at("state"), os.O_WRONLY | os.O_CREAT))


def dying_threads():
    """End with a failure while other threads write: their withdrawn calls are no interruption by a signal."""

    def write(number):
        fd = os.open(at(f"state{number}"), os.O_WRONLY | os.O_CREAT)
        while True:
            os.write(fd, b"x")
            os.lseek(fd, 0, os.SEEK_SET)

    for number in range(3):
        threading.Thread(target=write, args=(number,), daemon=True).start()
    with open(at("main"), "wb", buffering=0) as file:
        file.writelines(b"y" for _ in range(200))
    os._exit(7)


def big():
    """Write more than the supervisor's buffer at once."""
    block = bytes(range(256)) * 4096 * 33
    fd = os.open(at("state"), os.O_RDWR | os.O_CREAT)
    assert os.write(fd, block) == len(block)
    assert os.writev(fd, [block[:1_500_001], block[1_500_001:]]) == len(block)
    assert os.pread(fd, len(block), len(block)) == block
    assert os.pread(fd, len(block), 0) == block


def limited():
    """Tick after changes of folder and environment, with the kept number reused, with few descriptors allowed."""
    import resource

    import sitecustomize

    reporter = sitecustomize.reporter
    os.chdir("/")
    os.environ.clear()
    reporter.report(b"tick\n")
    os.closerange(3, 4096)
    fd = os.open(at("state"), os.O_WRONLY | os.O_CREAT)
    os.dup2(fd, 200)
    reporter.report(b"tick\n")
    assert os.fstat(fd).st_size == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
    os.closerange(3, 4096)
    reporter.report(b"tick\n")
    if os.fork() == 0:
        reporter.report(b"tick\n")
        os._exit(0)
    os.wait()


globals()[how]()

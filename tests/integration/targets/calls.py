"""Make every kind of watched call and print what each returned: `python calls.py OUT NUMBERS`.

NUMBERS is a JSON object of system call numbers. A run under interception must print, and leave in OUT, exactly what one
without does.
"""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, B023, PTH102, PTH106, PTH108, PTH118, PTH119, PTH123, RUF059, SIM115, T201 - written as a user writes

import ctypes
import errno
import json
import mmap
import os
import socket
import stat
import sys
import threading

out, numbers = sys.argv[1], json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
AT_FDCWD, AT_EMPTY_PATH, AT_SYMLINK_FOLLOW = -100, 0x1000, 0x400
NOREPLACE, EXCHANGE = 1, 2


def raw(name, *arguments):
    """Make one system call; raise OSError as Python's own functions do."""
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(numbers[name]), *converted)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def show(label, function, *arguments, **options):
    """Call, and print the result or the error's name; descriptors are shown as such."""
    try:
        result = function(*arguments, **options)
    except OSError as error:
        result = errno.errorcode[error.errno]
    print(f"{label}: {result}")
    return result


def at(name):
    """Return the path of a name in the folder."""
    return os.path.join(out, name)


def fresh(name, flags=os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode=0o644):
    """Open a new file."""
    return os.open(at(name), flags, mode)


def writes():
    """Make data calls, at the descriptor's offset and at given ones."""
    fd = fresh("writes")
    show("write", os.write, fd, b"a" * 5000)
    show("write nothing", os.write, fd, b"")
    show("pwrite", os.pwrite, fd, b"bb", 4095)
    show("pwrite negative", os.pwrite, fd, b"bb", -1)
    show("writev", os.writev, fd, [b"c" * 10, b"", b"d" * 20])
    show("pwritev", os.pwritev, fd, [b"e", b"f" * 30], 10000)
    show("pwritev2 append", os.pwritev, fd, [b"g" * 7], 0, os.RWF_APPEND)
    show("pwritev2 dsync", os.pwritev, fd, [b"h" * 7], 3, os.RWF_DSYNC)
    show("pwritev2 at offset", raw, "pwritev2", fd, vector(b"i" * 9), 1, -1, 0, 0)
    show("offset", os.lseek, fd, 0, os.SEEK_CUR)
    show("writev bad pointer", raw, "writev", fd, 16, 1)
    show("writev too many", raw, "writev", fd, vector(b"x"), 5000)
    show("write bad pointer", raw, "write", fd, 16, 100)
    show("write big", os.write, fd, b"z" * 3_000_001)
    show("ftruncate", os.ftruncate, fd, 2_000_000)
    show("ftruncate negative", raw, "ftruncate", fd, -1)
    show("fallocate", raw, "fallocate", fd, 0, 2_000_000, 4096)
    show("fallocate punch", raw, "fallocate", fd, 3, 4096, 8192)
    show("fallocate keep", raw, "fallocate", fd, 1, 3_000_000, 4096)
    show("fsync", os.fsync, fd)
    show("fdatasync", os.fdatasync, fd)
    show("size", lambda: os.fstat(fd).st_size)
    os.close(fd)
    show("write closed", os.write, fd, b"x")
    show("fsync closed", os.fsync, fd)
    reading = os.open(at("writes"), os.O_RDONLY)
    show("write read-only", os.write, reading, b"x")
    show("write nothing read-only", os.write, reading, b"")
    show("ftruncate read-only", os.ftruncate, reading, 0)
    os.close(reading)
    show("truncate", os.truncate, at("writes"), 6000)
    show("truncate missing", os.truncate, at("missing"), 6000)
    show("truncate folder", os.truncate, out, 0)


def vector(data):
    """Return one iovec over `data`, kept alive."""
    holder = ctypes.create_string_buffer(data, len(data))
    pair = (ctypes.c_uint64 * 2)(ctypes.addressof(holder), len(data))
    KEPT.append((holder, pair))
    return pair


KEPT = []


def transfers():
    """Make calls that move bytes between descriptors."""
    source = fresh("source")
    os.write(source, bytes(range(256)) * 64)
    target = fresh("target")
    show("sendfile", os.sendfile, target, source, 100, 5000)
    os.lseek(source, 50, os.SEEK_SET)
    show("sendfile at offset", raw, "sendfile", target, source, 0, 60)
    show("source offset", os.lseek, source, 0, os.SEEK_CUR)
    position = ctypes.c_int64(7)
    show("sendfile pointer", raw, "sendfile", target, source, ctypes.byref(position), 11)
    print("stored", position.value)
    show("copy_file_range", os.copy_file_range, source, target, 3000, 10, 20000)
    show("copy_file_range here", os.copy_file_range, source, target, 500)
    into, out_of = ctypes.c_int64(1), ctypes.c_int64(2)
    show("copy pointers", raw, "copy_file_range", source, ctypes.byref(out_of), target, ctypes.byref(into), 33, 0)
    print("stored", into.value, out_of.value)
    show("sendfile bad source", os.sendfile, target, 999, 0, 10)
    show("copy bad target", os.copy_file_range, source, 999, 10)
    read_end, write_end = os.pipe()
    os.write(write_end, b"through a pipe")
    show("splice", os.splice, read_end, target, 7)
    show("splice at offset", os.splice, read_end, target, 7, offset_dst=30000)
    show("splice to pipe", os.splice, source, write_end, 100, offset_src=0)
    show("clone bad", raw, "ioctl", target, 0x40049409, 999)
    show("target size", lambda: os.fstat(target).st_size)
    show("target offset", os.lseek, target, 0, os.SEEK_CUR)


def names():
    """Make calls that make, move and remove names."""
    for name in ("one", "two", "three"):
        os.close(fresh(name))
        os.truncate(at(name), len(name))
    show("rename", os.rename, at("one"), at("uno"))
    show("rename missing", os.rename, at("one"), at("uno"))
    show("rename over", os.replace, at("uno"), at("two"))
    one, two = os.fsencode(at("two")), os.fsencode(at("three"))
    show("noreplace", raw, "renameat2", AT_FDCWD, one, AT_FDCWD, two, NOREPLACE)
    show("exchange", raw, "renameat2", AT_FDCWD, one, AT_FDCWD, two, EXCHANGE)
    show("rename flags", raw, "renameat2", AT_FDCWD, one, AT_FDCWD, two, 77)
    show("rename to nowhere", os.rename, at("two"), at("no/where"))
    show("rename trailing", os.rename, at("two") + "/", at("dos"))
    show("rename empty", os.rename, "", at("dos"))
    show("rename to empty", os.rename, at("two"), "")
    show("mkdir", os.mkdir, at("folder"), 0o750)
    show("mkdir again", os.mkdir, at("folder"))
    show("mkdir trailing", os.mkdir, at("folder2") + "/")
    show("mkdir empty", os.mkdir, "")
    show("rename onto folder", os.rename, at("two"), at("folder"))
    show("rename folder", os.rename, at("folder2"), at("folder/inner"))
    show("rename into itself", os.rename, at("folder"), at("folder/inner/x"))
    show("rmdir full", os.rmdir, at("folder"))
    show("rmdir", os.rmdir, at("folder/inner"))
    show("rmdir file", os.rmdir, at("two"))
    show("unlink folder", os.unlink, at("folder"))
    show("unlink missing", os.unlink, at("one"))
    show("unlink empty", os.unlink, "")
    show("link", os.link, at("two"), at("hard"))
    show("link again", os.link, at("two"), at("hard"))
    show("link missing", os.link, at("one"), at("hard2"))
    show("symlink", os.symlink, "two", at("soft"))
    show("symlink dangling", os.symlink, "nowhere", at("dangling"))
    show("symlink again", os.symlink, "two", at("soft"))
    show("symlink empty", os.symlink, "", at("empty"))
    show("link of link", os.link, at("soft"), at("soft2"), follow_symlinks=False)
    show("followed link of link", os.link, at("soft"), at("hard3"), follow_symlinks=True)
    show("unlink link", os.unlink, at("soft2"))
    show("mkfifo", os.mkfifo, at("fifo"), 0o600)
    show("mknod", os.mknod, at("node"), stat.S_IFREG | 0o640)
    show("mknod again", os.mknod, at("node"), stat.S_IFREG | 0o640)
    show("long name", os.mkdir, at("x" * 300))


def opens():
    """Ways to make or empty a file."""
    show("excl", os.close, fresh("excl", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    show("excl again", fresh, "excl", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    fd = fresh("append", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    show("append", os.write, fd, b"12345")
    show("append at", os.pwrite, fd, b"678", 0)
    show("append offset", os.lseek, fd, 0, os.SEEK_CUR)
    os.close(fd)
    os.close(fresh("append", os.O_WRONLY | os.O_TRUNC))
    show("emptied", os.path.getsize, at("append"))
    show("trunc missing", fresh, "missing", os.O_WRONLY | os.O_TRUNC)
    show("creat nowhere", fresh, "no/where")
    show("open folder", os.open, out, os.O_WRONLY)
    show("create folder", os.open, out, os.O_WRONLY | os.O_CREAT)
    show("open empty", os.open, "", os.O_WRONLY | os.O_CREAT)
    show("under a file", fresh, "excl/x")
    show("dangling", lambda: os.close(fresh("dangling")))
    show("through link", lambda: os.close(fresh("soft")))
    show("nofollow", fresh, "soft", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW)
    show("excl dangling", fresh, "soft", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    show("creat", lambda: os.close(raw("creat", os.fsencode(at("creat")), 0o600)) if "creat" in numbers else None)
    fd = fresh("inherit", os.O_WRONLY | os.O_CREAT)
    show("cloexec", os.get_inheritable, fd)
    flags = raw("openat", AT_FDCWD, os.fsencode(at("plain")), os.O_WRONLY | os.O_CREAT, 0o644)
    show("no cloexec", os.get_inheritable, flags)
    print("descriptors", fd, flags)
    show("bad pointer", raw, "openat", AT_FDCWD, 16, os.O_WRONLY | os.O_CREAT, 0o644)
    direct = show("direct", lambda: fresh("direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT) > 0)
    if direct is True:
        fd = os.open(at("direct"), os.O_WRONLY | os.O_DIRECT)
        block = mmap.mmap(-1, 1 << 16)
        block.write(b"d" * (1 << 16))
        show("direct write", os.write, fd, block)
        show("direct writev", os.writev, fd, [memoryview(block)[:4096], memoryview(block)[4096:12288]])
    for resolve in (0, 0x08, 0x10):
        how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_CREAT, 0o640, resolve)
        for name in (
            b"openat2.%d" % resolve,
            b"../%s/up.%d" % (os.fsencode(os.path.basename(out)), resolve),
            os.fsencode(at("up")),
        ):
            folder = os.open(out, os.O_RDONLY)
            show(f"openat2 {name[-6:]} {resolve}", lambda: os.close(raw("openat2", folder, name, how, 24)))
            os.close(folder)


def relative():
    """Names relative to folders of several kinds, umask and mode."""
    os.mkdir(at("deep"))
    os.chdir(at("deep"))
    show("relative", lambda: os.close(os.open("here", os.O_WRONLY | os.O_CREAT, 0o666)))
    show("relative up", lambda: os.close(os.open("../up", os.O_WRONLY | os.O_CREAT, 0o666)))
    folder = os.open(out, os.O_RDONLY)
    show("dirfd", lambda: os.close(os.open("by_fd", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)))
    show("dirfd mkdir", os.mkdir, "by_fd_folder", dir_fd=folder)
    show("dirfd rename", os.rename, "by_fd", "by_fd_folder/moved", src_dir_fd=folder, dst_dir_fd=folder)
    show("dirfd symlink", os.symlink, "moved", "by_fd_folder/link", dir_fd=folder)
    show("dirfd unlink", os.unlink, "by_fd_folder/link", dir_fd=folder)
    file = os.open("here", os.O_RDONLY)
    for number in (file, 999, -7):
        show("bad dirfd open", os.open, "x", os.O_WRONLY | os.O_CREAT, dir_fd=number)
        show("bad dirfd mkdir", os.mkdir, "x", dir_fd=number)
        show("bad dirfd unlink", os.unlink, "x", dir_fd=number)
        show("bad dirfd rename", os.rename, "here", "x", dst_dir_fd=number)
        show("absolute", lambda n=number: os.close(os.open(at("abs"), os.O_WRONLY | os.O_CREAT, dir_fd=n)))
    os.umask(0o077)
    show("umask", lambda: os.close(os.open("private", os.O_WRONLY | os.O_CREAT, 0o777)))
    show("umask mkdir", os.mkdir, "private_folder", 0o777)
    os.umask(0o022)
    show("proc self", lambda: os.close(os.open("/proc/self/cwd/by_proc", os.O_WRONLY | os.O_CREAT)))
    show("proc thread", lambda: os.close(os.open("/proc/thread-self/cwd/by_thread", os.O_WRONLY | os.O_CREAT)))
    show("own pid", lambda: os.close(os.open(f"/proc/{os.getpid()}/cwd/by_pid", os.O_WRONLY | os.O_CREAT)))
    emptied = os.open("here", os.O_RDWR)
    os.write(emptied, b"something")
    show("dev fd", lambda: os.close(os.open(f"/dev/fd/{emptied}", os.O_WRONLY | os.O_TRUNC)))
    show("dev fd size", lambda: os.fstat(emptied).st_size)
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")
    show("cwd gone", os.open, "x", os.O_WRONLY | os.O_CREAT)
    show("mkdir cwd gone", os.mkdir, "x")
    os.chdir("/")
    show("odd name", lambda: os.close(os.open(os.fsencode(out) + b"/\xff\xfe odd\n", os.O_WRONLY | os.O_CREAT)))
    show("odd rename", os.rename, os.fsencode(out) + b"/\xff\xfe odd\n", os.fsencode(out) + b"/\xfd (deleted)")
    os.close(folder)


def temporary_files():
    """Files without a name that get one."""
    for number, way in enumerate(("proc", "empty")):
        fd = os.open(out, os.O_TMPFILE | os.O_RDWR, 0o640)
        show("tmpfile write", os.write, fd, b"unnamed")
        new = os.fsencode(at(f"named{number}"))
        if way == "proc":
            old = f"/proc/self/fd/{fd}".encode()
            show("link proc", raw, "linkat", AT_FDCWD, old, AT_FDCWD, new, AT_SYMLINK_FOLLOW)
        else:
            show("link empty", raw, "linkat", fd, b"", AT_FDCWD, new, AT_EMPTY_PATH)
        show("written after", os.write, fd, b" no more")
        os.close(fd)
    fd = fresh("unlinked")
    os.unlink(at("unlinked"))
    show("write unlinked", os.write, fd, b"x" * 100)
    show("link unlinked", raw, "linkat", fd, b"", AT_FDCWD, os.fsencode(at("back")), AT_EMPTY_PATH)


def metadata():
    """Modes, times and attributes."""
    os.close(fresh("meta"))
    show("chmod", os.chmod, at("meta"), 0o604)
    show("utime", os.utime, at("meta"), (1, 2))
    fd = os.open(at("meta"), os.O_RDWR)
    show("futimens", os.utime, fd, (3, 4))
    show("fchmod", os.fchmod, fd, 0o640)
    show("setxattr", os.setxattr, at("meta"), "user.a", b"1")
    show("fsetxattr", os.setxattr, fd, "user.b", b"2")
    show("mtime", lambda: os.fstat(fd).st_mtime)
    show("chmod missing", os.chmod, at("missing"), 0o600)
    show("chown", os.chown, at("meta"), os.getuid(), os.getgid())
    os.close(fd)


def channels():
    """Pipes, sockets and a FIFO in the folder: never files, and they may block."""
    read_end, write_end = os.pipe()
    show("pipe", os.write, write_end, b"x" * 1000)
    left, right = socket.socketpair()
    show("socket", os.write, left.fileno(), b"y" * 1000)
    reader = threading.Thread(target=lambda: open(at("fifo"), "rb").read())
    reader.start()
    fifo = os.open(at("fifo"), os.O_WRONLY)
    show("fifo", os.write, fifo, b"z" * 200_000)
    os.close(fifo)
    reader.join()
    server = socket.socket(socket.AF_UNIX)
    os.chdir(out)
    show("bind", server.bind, "socket")
    master, slave = os.openpty()
    show("pty", os.write, slave, b"to a terminal")
    show("dev null", lambda: os.write(os.open("/dev/null", os.O_WRONLY | os.O_TRUNC), b"x"))


def descriptors():
    """Limits of the descriptor table: the next open fails and leaves what it would have left anyway."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    result = show("table full", fresh, "full")
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    print("table", result)


for section in (writes, transfers, names, opens, relative, temporary_files, metadata, channels, descriptors):
    print(f"--- {section.__name__}")
    section()
print("done")

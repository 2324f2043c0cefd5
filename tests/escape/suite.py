"""Running probe.c in a sandbox, and the world outside that it looks for."""

import base64
import contextlib
import ctypes
import functools
import os
import pathlib
import re
import secrets
import socket
import subprocess

from gbx.platform import program

NAMESPACES = ("pid", "net", "ipc", "user", "mnt", "uts", "cgroup")


@functools.cache
def names():
    return subprocess.run([program("escape_probe"), "list"], check=True, capture_output=True,
                          text=True).stdout.split()


@contextlib.contextmanager
def box_with_probe(platform, **fields):
    with platform.api.create(**fields) as box:
        box.put("/tmp/probe", pathlib.Path(program("escape_probe")).read_bytes(), mode="0755")
        yield box


def run_probes(box, world, *probes, user="user"):
    """{probe: outcome}; all of them when none is named."""
    r = box.exec(["/tmp/probe", *(probes or ["all"])], env=world, user=user, limit_s=120,
                 timeout_s=130)
    assert r.code == 0, dict(r)
    found = dict(line.split(" ", 1) for line in r.out.decode().splitlines())
    assert set(found) == set(probes or names()), "every probe says its outcome"
    return found


# Without a user namespace of its own nobody in the sandbox can create a file on its disk, whose ids
# are mapped: there the probe is run from memory.
FROM_MEMORY = """
import os, sys
fd = os.memfd_create("probe", 0)
with open(fd, "wb", closefd=False) as f:
    f.write(sys.stdin.buffer.read())
os.execve(fd, ["probe"] + sys.argv[1:], dict(os.environ))
"""


def run_probes_from_memory(box, world, *probes, user="user"):
    binary = base64.b64encode(pathlib.Path(program("escape_probe")).read_bytes()).decode()
    r = box.exec(["python3", "-c", FROM_MEMORY, *probes], env=world, user=user, stdin_b64=binary,
                 cwd="/", limit_s=120, timeout_s=130)
    assert r.code == 0, dict(r)
    found = dict(line.split(" ", 1) for line in r.out.decode().splitlines())
    assert set(found) == set(probes)
    return found


def attack(box, name, count, user="user"):
    """(steps granted, what stopped it); (None, how it died) when it was killed."""
    r = box.exec(["/tmp/probe", "attack", name, str(count)], user=user, limit_s=60, timeout_s=90)
    match = re.search(rb"attack (\S+) reached (-?\d+) (\S+)", r.out)
    if not match:
        return None, "oom" if r["oom_killed"] else f"exit {r.code}"
    return int(match[2]), match[3].decode()


@contextlib.contextmanager
def outside():
    """Things on the host for the probes to look for; yields them as environment variables."""
    word = secrets.token_hex(8)
    libc = ctypes.CDLL(None, use_errno=True)
    key = secrets.randbits(30) | 1
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind("\0" + word)
        listener.listen(8)
        tcp = stack.enter_context(socket.socket())
        tcp.bind(("127.0.0.1", 0))
        tcp.listen(8)
        path = pathlib.Path(f"/tmp/gbx-secret-{word}")
        path.write_text("secret")
        path.chmod(0o644)
        stack.callback(path.unlink)
        sleeper = subprocess.Popen(["sleep", "600"])
        stack.callback(sleeper.wait)
        stack.callback(sleeper.kill)
        segment = libc.shmget(key, 4096, 0o1666)  # IPC_CREAT
        assert segment >= 0
        stack.callback(libc.shmctl, segment, 0, None)  # IPC_RMID
        yield {"PROBE_ABSTRACT": word, "PROBE_PORT": str(tcp.getsockname()[1]),
               "PROBE_FILE": str(path), "PROBE_PID": str(sleeper.pid), "PROBE_SHM": str(key),
               **{f"PROBE_NS_{kind}": os.readlink(f"/proc/self/ns/{kind}") for kind in NAMESPACES}}


NORMAL_WORK = [
    "echo $((6*7)) | grep -q 42",
    "python3 -c 'import ssl, sqlite3, threading, multiprocessing, tempfile, json'",
    "python3 -c 'import multiprocessing as m; p = m.Pool(4); assert p.map(abs, range(-50, 0))'",
    "python3 -c 'import threading as t; [x.start() for x in [t.Thread(target=id, args=(1,)) "
    "for _ in range(50)]]'",
    "cd ~ && echo x > f && mv f g && ln -s g h && ln g i && chmod 700 g && rm f g h i -f",
    "cd /tmp && mktemp && echo x > /dev/shm/s && rm /dev/shm/s",
    "for i in $(seq 50); do (true) & done; wait",
    "python3 - <<'X'\nimport socket, threading\ns = socket.create_server(('127.0.0.1', 0))\n"
    "c = socket.create_connection(s.getsockname()); a, _ = s.accept(); c.sendall(b'x'); "
    "assert a.recv(1) == b'x'\nu, v = socket.socketpair(); u.send(b'y'); assert v.recv(1) == b'y'\nX",
    "python3 -c 'import socket; s = socket.create_server((\"::1\", 0), family=socket.AF_INET6)'",
    "python3 -c 'import pty, os; m, s = pty.openpty(); os.write(s, b\"x\"); assert os.read(m, 1)'",
    "python3 -c 'import os; fds = [os.open(\"/dev/null\", 0) for _ in range(500)]'",
    "python3 -c 'import mmap; m = mmap.mmap(-1, 1 << 24); m[:] = b\"x\" * (1 << 24)'",
    "head -c 100 /dev/urandom | wc -c | grep -q 100; test -w /dev/null; test -r /dev/zero",
    "timeout 5 sh -c 'trap \"exit 0\" TERM; kill -TERM $$; sleep 4; exit 1'",
    "test \"$(cat /proc/self/comm)\" = cat && ps -e >/dev/null && nproc >/dev/null",
    "getent passwd user >/dev/null && id >/dev/null && date >/dev/null && df -h >/dev/null",
    "python3 -c 'import os; os.sched_setaffinity(0, os.sched_getaffinity(0)); os.nice(1)'",
    "python3 -c 'import os, signal; p = os.fork() or os._exit(3); assert os.waitstatus_to_exitcode"
    "(os.waitpid(p, 0)[1]) == 3'",
    "dd if=/dev/zero of=~/d bs=1M count=20 2>/dev/null && sync && rm ~/d",
    "setsid true && nohup true >/dev/null && script -qc true /dev/null >/dev/null",
]

"""Behaves badly and reports what stopped it. Nothing of it is felt outside of the sandbox.

Try: glovebox run --memory 128m --pids 64 --disk 64m examples/limits.py
"""

import os
import socket
import time

MIB = 1 << 20


def hog_memory():
    pid = os.fork()
    if pid == 0:
        kept = []
        while True:
            kept.append(bytearray(os.urandom(4096) * (MIB // 4096)))
    _, status = os.waitpid(pid, 0)
    return f"a child that took all memory was ended by signal {os.WTERMSIG(status)}"


def hog_processes():
    children = []
    try:
        for _ in range(10_000):
            pid = os.fork()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            children.append(pid)
        return "10,000 processes: there is no limit!"
    except OSError as error:
        return f"after {len(children)} processes: {error.strerror}"
    finally:
        for pid in children:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def hog_disk():
    written = 0
    try:
        with open("big", "wb", buffering=0) as file:
            while written < 100_000 * MIB:
                written += file.write(os.urandom(MIB))
        return "100 GB written: there is no limit!"
    except OSError as error:
        return f"after {written // MIB} MiB written: {error.strerror}"
    finally:
        os.remove("big")


def reach_out():
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=3).close()
        return "there is a network"
    except OSError as error:
        return f"to the outside: {error.strerror or error}"


for attempt in (hog_memory, hog_processes, hog_disk, reach_out):
    print(f"{attempt.__name__:14} {attempt()}", flush=True)

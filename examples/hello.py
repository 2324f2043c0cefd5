"""The first thing to run: ./dev run examples/hello.py"""

import os
import platform
import pwd
import socket


def reach(host, port):
    try:
        socket.create_connection((host, port), timeout=2).close()
        return "reached"
    except OSError as e:
        return f"refused ({e.strerror or e})"


def others():
    return len([p for p in os.listdir("/proc") if p.isdigit()]) - 1


print("Hello from inside a sandbox!")
print(f"  Python {platform.python_version()}, user {pwd.getpwuid(os.getuid()).pw_name}, "
      f"in {os.getcwd()}")
print(f"  other processes in sight: {others()}")
print(f"  files in /home: {' '.join(sorted(os.listdir('/home')))}")
print(f"  the network: {reach('192.0.2.1', 80)}")

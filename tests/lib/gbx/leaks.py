"""What a platform has left on the host: each check names the things, so a failure reads well."""

import os
import pathlib
import subprocess


def _read(path):
    try:
        return pathlib.Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def processes(cgroup):
    """Processes in any cgroup of that name, in any hierarchy: "pid name"."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and f"/{cgroup}" in _read(f"/proc/{entry}/cgroup"):
            found.append(f"{entry} {_read(f'/proc/{entry}/comm').strip()}")
    return found


def cgroup_dirs(cgroup):
    """Directories below every directory of that name under /sys/fs/cgroup."""
    found = []
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(top) == cgroup:
            found += [os.path.join(top, d) for d in dirs]
            dirs[:] = []
    return found


def cgroup_roots(cgroup):
    return [top for top, _, _ in os.walk("/sys/fs/cgroup") if os.path.basename(top) == cgroup]


def mounts(directory):
    """Mounts with that directory in their mount point, root or source, in any mount namespace."""
    found, seen = [], set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            namespace = os.readlink(f"/proc/{entry}/ns/mnt")
        except OSError:
            continue
        if namespace in seen:
            continue
        seen.add(namespace)
        for line in _read(f"/proc/{entry}/mountinfo").splitlines():
            if str(directory) in line:
                found.append(f"pid {entry}: {line}")
    return found


def loops(directory):
    """Loop devices backed by a file below the directory (also a removed one)."""
    found = []
    for backing in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        text = _read(backing).strip()
        if text.startswith(str(directory)):
            found.append(f"{backing.parts[3]} {text}")
    return found


def namespaces():
    """Counts of the namespaces that processes are in, by kind."""
    kinds = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            for kind in ("mnt", "net", "pid", "user", "ipc", "uts", "cgroup"):
                try:
                    kinds.setdefault(kind, set()).add(os.readlink(f"/proc/{entry}/ns/{kind}"))
                except OSError:
                    pass
    return {kind: len(ids) for kind, ids in kinds.items()}


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def files(directory):
    try:
        return [str(p) for p in pathlib.Path(directory).iterdir()]
    except OSError:
        return []


# Taking away by force, after a test that failed.

def unmount_below(directory):
    points = [line.split()[4] for line in _read("/proc/self/mountinfo").splitlines()
              if str(directory) in line.split()[4]]
    for point in reversed(points):
        subprocess.run(["umount", "-l", point], check=False, stderr=subprocess.DEVNULL)


def detach_loops(directory):
    for line in loops(directory):
        subprocess.run(["losetup", "-d", "/dev/" + line.split()[0]], check=False,
                       stderr=subprocess.DEVNULL)


def remove_cgroups(cgroup):
    for root in cgroup_roots(cgroup):
        for top, _, _ in os.walk(root, topdown=False):
            try:
                os.rmdir(top)
            except OSError:
                pass

"""What the kernel says limits a process: cgroup v1 or v2, read on the host."""

import pathlib


def _paths(pid):
    """{controller: directory}; the key "" is the v2 hierarchy."""
    found = {}
    mounts = [line.split() for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for mount in mounts:
            kind, options = mount[mount.index("-") + 1], mount[-1].split(",")
            match = kind == "cgroup2" if not controllers else (
                kind == "cgroup" and set(controllers.split(",")) <= set(options))
            if match:
                for controller in controllers.split(","):
                    found[controller] = pathlib.Path(mount[4] + path)
                break
    return found


def _read(directory, name):
    try:
        return (directory / name).read_text().split()
    except (OSError, TypeError):
        return None


def _tightest(directory, name):
    """The smallest value in this group and those above it; infinity where there is none."""
    value = float("inf")
    while directory and (text := _read(directory, name)):
        if text[0] not in ("max", "-1"):
            value = min(value, int(text[0]))
        directory = directory.parent
    return value


def kernel_limits(pid):
    paths = _paths(pid)
    two = paths.get("")
    memory = min(_tightest(paths.get("memory"), "memory.limit_in_bytes"),
                 _tightest(two, "memory.max"))
    pids = min(_tightest(paths.get("pids"), "pids.max"), _tightest(two, "pids.max"))
    cpus = float("inf")
    if "cpu" in paths and (quota := _read(paths["cpu"], "cpu.cfs_quota_us")) and quota[0] != "-1":
        cpus = int(quota[0]) / int(_read(paths["cpu"], "cpu.cfs_period_us")[0])
    elif two and (text := _read(two, "cpu.max")) and text[0] != "max":
        cpus = int(text[0]) / int(text[1])
    return {"memory_bytes": memory, "pids": pids, "cpus": cpus}

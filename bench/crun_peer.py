"""Runs in a mount namespace of its own: for each line on stdin, one container by crun (create,
start, exec of /bin/true); prints the milliseconds that took. Then deletes it."""

import json
import os
import pathlib
import subprocess
import sys
import time

directory = pathlib.Path(sys.argv[1])
bundle, state = directory / "bundle", directory / "state"


def run(*argv, **kwargs):
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **kwargs)


def prepare():
    for mount in ("/sys/fs/cgroup/unified",):
        if os.path.ismount(mount):
            run("umount", mount)
    root = bundle / "rootfs"
    for name in ("usr", "proc", "dev", "sys", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    subprocess.run(["crun", "spec"], cwd=bundle, check=True)
    spec = json.loads((bundle / "config.json").read_text())
    spec["process"]["args"] = ["/bin/sleep", "100"]
    spec["process"]["terminal"] = False
    spec["root"] = {"path": "rootfs", "readonly": True}
    spec["mounts"].insert(0, {"destination": "/usr", "source": "/usr", "type": "bind",
                              "options": ["rbind", "ro"]})
    # The same limits that a sandbox of ours has by default.
    spec["linux"].setdefault("resources", {}).update(
        {"memory": {"limit": 512 << 20}, "pids": {"limit": 512}, "cpu": {"quota": 100000, "period": 100000}})
    (bundle / "config.json").write_text(json.dumps(spec))


def sample(n):
    name = f"gbx-{os.getpid()}-{n}"
    crun = ("crun", "--root", str(state))
    start = time.monotonic()
    # Its output goes nowhere: a pipe would be kept open by the container.
    run(*crun, "create", "--bundle", str(bundle), name, stderr=subprocess.DEVNULL)
    run(*crun, "start", name)
    run(*crun, "exec", name, "/bin/true")
    took = (time.monotonic() - start) * 1000
    run(*crun, "delete", "--force", name)
    return took


prepare()
sample(0)  # Warm.
for number, _ in enumerate(sys.stdin):
    print(f"{sample(number + 1):.3f}", flush=True)

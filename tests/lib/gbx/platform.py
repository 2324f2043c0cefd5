"""Starts the real programs in a directory of their own, and stops them.

A Platform is one warden (as root) and one daemon (as nobody) with a private data directory, cgroup
name, id range and sockets. Its logs stay in `dir` until the end; a failing test prints their tails.
"""

import os
import pathlib
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from gbx import http, leaks
from gbx.api import BASE, Api
from gbx.wait import until

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("GLOVEBOX_BIN_DIR", ROOT / "build/dev/bin")).resolve()
DAEMON_USER, DAEMON_UID, DAEMON_GID = "nobody", 65534, 65534


def program(name):
    path = BIN / name
    assert path.exists(), f"{path} is not built (GLOVEBOX_BIN_DIR says where to look)"
    return str(path)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """A child whose output goes to a file. It ends when we do, also when we are killed."""

    def __init__(self, argv, log, env=None):
        self.argv, self.log = argv, pathlib.Path(log)
        with open(log, "ab") as out:
            self.child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *argv], stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, env=env, start_new_session=True)

    @property
    def pid(self):
        return self.child.pid

    def running(self):
        return self.child.poll() is None

    def kill(self):
        """kill -9, and waits for its end."""
        if self.running():
            self.child.kill()
        self.child.wait(10)

    def stop(self, within_s=20):
        """SIGTERM; returns the exit code. AssertionError if it does not end."""
        if self.running():
            self.child.terminate()
        try:
            return self.child.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.argv[0]} did not end within {within_s} s of SIGTERM; "
                                 f"its log ends:\n{self.tail()}") from None

    def tail(self, lines=40):
        try:
            return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])
        except OSError:
            return "(no log)"

    def resident_bytes(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0


class Platform:
    domain = "gbx.test"

    def __init__(self, unguarded=None, config="", pool=2, max_sandboxes=400,
                 log_level="debug"):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="gbx-"))
        self.dir.chmod(0o755)  # The daemon, which is not root, goes through it.
        self.cgroup = "gbx-" + secrets.token_hex(4)
        # The default range starts at 0x70000000: stay clear of a platform that runs here anyway.
        self.uid_base = 0x80000000 + random.randrange(6) * 0x10000000
        self.unguarded, self.pool, self.max_sandboxes = unguarded, pool, max_sandboxes
        self.log_level = log_level
        self.port = free_port()
        self.run_dir, self.data_dir = self.dir / "run", self.dir / "data"
        self.warden = self.daemon = self.key = None
        self.api = Api(http.Address(unix=self.socket))
        self.http_api = None
        self.config_file = self.dir / "glovebox.toml"
        self.config_file.write_text(
            f'listen = "127.0.0.1:{self.port}"\n'
            f'run_dir = "{self.run_dir}"\ndata_dir = "{self.data_dir}"\nuser = "{DAEMON_USER}"\n'
            f'gateway.domain = "{self.domain}"\nlog.level = "{log_level}"\n' + config)
        self.config_file.chmod(0o644)

    # Where things are.

    @property
    def socket(self):
        return str(self.run_dir / "glovebox.sock")

    @property
    def key_file(self):
        return self.data_dir / "api-key"

    @property
    def warden_socket(self):
        return str(self.run_dir / "warden.sock")

    @property
    def tcp(self):
        return http.Address(host="127.0.0.1", port=self.port)

    # Life.

    def start(self):
        try:
            self.run_dir.mkdir()
            os.chown(self.run_dir, DAEMON_UID, DAEMON_GID)
            self.start_warden()
            self.start_daemon()
            self.key = self.key_file.read_text().strip()
            self.http_api = Api(self.tcp, self.key)
        except BaseException:
            self.print_logs()
            self.scrub()
            raise
        return self

    def start_warden(self):
        argv = [program("glovebox-warden"), "--socket", self.warden_socket,
                "--state-dir", str(self.dir / "warden"), "--agent", program("glovebox-agent"),
                "--agent-sockets", str(self.run_dir / "agents"), "--client-uid", str(DAEMON_UID),
                "--client-gid", str(DAEMON_GID), "--pool", str(self.pool),
                "--max-sandboxes", str(self.max_sandboxes), "--uid-base", str(self.uid_base),
                "--cgroup", self.cgroup, "--log-level", self.log_level]
        if self.unguarded:
            argv += ["--unguarded", self.unguarded]
        pathlib.Path(self.warden_socket).unlink(missing_ok=True)
        self.warden = Process(argv, self.dir / "warden.log")

        def listening():
            assert self.warden.running(), f"the warden ended:\n{self.warden.tail()}"
            return os.path.exists(self.warden_socket)

        until(listening, 60, "the warden listens")

    def start_daemon(self, ready=True):
        self.daemon = Process([program("gloveboxd"), "--config", str(self.config_file),
                               "--api-key-file", str(self.key_file)],
                              self.dir / "daemon.log")

        def is_ready():
            assert self.daemon.running(), f"the daemon ended:\n{self.daemon.tail()}"
            try:
                return http.request(self.api.address, "GET", "/ready", timeout_s=5).status == 200
            except OSError:
                return False

        if ready:
            until(is_ready, 30, "the daemon is ready")

    def end_clean(self, verbose=True):
        """Removes every sandbox, stops both programs and checks that nothing is left."""
        try:
            if not (self.daemon.running() and self.warden.running()):
                raise AssertionError("a program ended by itself:\n" + self.logs())
            self.delete_all()
            until(lambda: not self.api.list_all(state="creating,running,pausing,paused,resuming,"
                                                       "stopping"), 30, "all sandboxes end")
            codes = (self.daemon.stop(), self.warden.stop())
            assert codes == (0, 0), f"exit codes {codes}:\n{self.logs()}"
            self.assert_nothing_left()
        except BaseException:
            if verbose:
                self.print_logs()
            raise
        finally:
            self.scrub()

    def delete_all(self):
        for fields in self.api.list_all(state="creating,running,pausing,paused,resuming"):
            self.api.sandbox(fields["id"]).delete()

    def left(self):
        """What is on the host because of this platform, beyond its files: {kind: [thing…]}."""
        own = {self.daemon.pid, self.warden.pid}
        found = {
            "processes": [p for p in leaks.processes(self.cgroup) if int(p.split()[0]) not in own],
            "cgroups": leaks.cgroup_dirs(self.cgroup),
            "mounts": leaks.mounts(self.dir),
            "loop devices": leaks.loops(self.dir),
            "agent sockets": leaks.files(self.run_dir / "agents"),
            "ownership records": leaks.files(self.dir / "warden/records"),
        }
        return {kind: things for kind, things in found.items() if things}

    def assert_nothing_left(self):
        # Namespaces and cgroups are taken down by the kernel a little later than their last task.
        end = time.monotonic() + 10
        while self.left() and time.monotonic() < end:
            time.sleep(0.1)
        assert not self.left(), self.left()

    def scrub(self):
        """Ends everything by force, so that a failed test does not disturb the next one."""
        for process in (self.daemon, self.warden):
            if process:
                process.kill()
        for line in leaks.processes(self.cgroup):
            try:
                os.kill(int(line.split()[0]), signal.SIGKILL)
            except ProcessLookupError:
                pass
        end = time.monotonic() + 5
        while leaks.processes(self.cgroup) and time.monotonic() < end:
            time.sleep(0.05)
        leaks.unmount_below(self.dir)
        leaks.detach_loops(self.dir)
        leaks.remove_cgroups(self.cgroup)
        shutil.rmtree(self.dir, ignore_errors=True)

    # Looking inside.

    def host_pids(self, sandbox):
        """{pid inside: pid on the host} of a sandbox's processes."""
        namespace = sandbox.sh("readlink /proc/self/ns/pid").strip()
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                if os.readlink(f"/proc/{entry}/ns/pid") != namespace:
                    continue
                status = pathlib.Path(f"/proc/{entry}/status").read_text()
            except OSError:
                continue
            for line in status.splitlines():
                if line.startswith("NSpid:"):
                    found[int(line.split()[-1])] = int(entry)
        return found

    def agent_pid(self, sandbox):
        return self.host_pids(sandbox)[1]

    def kill_agent(self, sandbox):
        os.kill(self.agent_pid(sandbox), signal.SIGKILL)

    def resident_bytes(self, sandbox=None):
        """Of the daemon, the warden and that sandbox's first process."""
        total = self.daemon.resident_bytes() + self.warden.resident_bytes()
        if sandbox:
            if not hasattr(sandbox, "agent_on_host"):
                sandbox.agent_on_host = self.agent_pid(sandbox)
            status = pathlib.Path(f"/proc/{sandbox.agent_on_host}/status").read_text()
            total += next(int(line.split()[1]) * 1024 for line in status.splitlines()
                          if line.startswith("VmRSS:"))
        return total

    def logs(self):
        return "\n".join(f"---- {p.log.name} (pid {p.pid}, running: {p.running()})\n{p.tail()}"
                         for p in (self.warden, self.daemon) if p)

    def print_logs(self):
        print(self.logs())

    def cli(self, *args, stdin=b"", timeout_s=60, env=None, url=None):
        """Runs the command line against this platform; returns a CompletedProcess of bytes."""
        return subprocess.run(
            [program("glovebox"), *args], input=stdin, capture_output=True, timeout=timeout_s,
            check=False, env={"PATH": os.environ["PATH"], "HOME": str(self.dir),
                              "GLOVEBOX_URL": url or f"unix://{self.socket}", **(env or {})})

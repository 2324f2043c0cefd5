"""What code in a sandbox can see, reach and do: the probes of probe.c, run as both users.

Each probe must fail. Which guard makes it fail is shown by test_guards.py, where the guard is off
and the same probe succeeds: a probe that could never succeed would prove nothing.
"""

import os

import pytest

import suite

# Probes that may succeed, with the reason; and those whose failure must be a certain one.
MAY = {
    "child_of_two": "debuggers work on one's own children",
    "setuid_bit": "no_new_privs makes set-uid programs plain ones: see new_privs",
    "read_config": "says how the kernel was built, which uname -r tells anyway",
}
MAY_AS_ROOT = {
    "caps_any": "root inside holds capabilities over its own files; the bound_* probes look for power",
    "write_usr": "a private copy in its own layer: test_writes_stay_in_the_sandbox",
    "write_root_dir": "the same",
    "into_root": "its own home",
}
ONLY = {
    "pid_host": {"ESRCH"}, "shm_host": {"ENOENT"}, "no_such_syscall": {"ENOSYS"},
    "abstract_host": {"ECONNREFUSED"}, "port_host": {"ECONNREFUSED"}, "file_host": {"ENOENT"},
}


@pytest.fixture(scope="module")
def outcomes(platform, world):
    with suite.box_with_probe(platform) as box:
        return {user: suite.run_probes(box, world, user=user) for user in ("user", "root")}


@pytest.mark.parametrize("name", suite.names())
@pytest.mark.parametrize("user", ["user", "root"])
def test_holds(outcomes, user, name):
    outcome = outcomes[user][name]
    if name in MAY or (user == "root" and name in MAY_AS_ROOT):
        return
    assert outcome != "OK", f"{name} is possible as {user}"
    assert outcome not in ("EINVAL?", "fork-failed", "SIGALRM", "SIGSEGV"), "the probe did not work"
    if name in ONLY:
        assert outcome in ONLY[name], f"{name} as {user}: {outcome}"


def test_normal_work_still_works(platform):
    """The positive side: what programs need, as both users."""
    with suite.box_with_probe(platform) as box:
        for user in ("user", "root"):
            for line in suite.NORMAL_WORK:
                r = box.exec(line, user=user, limit_s=30)
                assert r.code == 0, (user, line, dict(r))
        assert suite.run_probes(box, {}, "child_of_two")["child_of_two"] == "OK"


def test_writes_stay_in_the_sandbox(api):
    with api.create() as a, api.create() as b:
        a.exec("echo x > /usr/probe-file; echo x > /usr/local/probe-file; echo x > /etc/probe-file; "
               "echo '#' >> /usr/bin/env", user="root")
        for path in ("/usr/probe-file", "/usr/local/probe-file", "/etc/probe-file"):
            assert not os.path.exists(path)
            assert b.exec(["/usr/bin/test", "-e", path]).code == 1
        assert b.exec(["/usr/bin/env", "true"]).code == 0


def test_nothing_of_the_host_is_in_the_file_system(api, tmp_path):
    """Unlike a list of paths, this walks what is there."""
    with api.create() as box:
        top = set(box.sh("ls -A /").split())
        assert not top - {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "home",
                          "root", "tmp", "run", "dev", "proc", "sys", "var", "opt", "srv", "mnt",
                          "media", "boot"}, top
        assert box.sh("ls -A /home", user="root").split() == ["user"]
        for directory in ("/root", "/srv", "/opt", "/mnt", "/media", "/boot"):
            listed = box.exec(["/bin/ls", "-A", directory], user="root").out.decode().split()
            assert not set(listed) - {".bashrc", ".profile", ".bash_logout"}, (directory, listed)
        etc = set(box.sh("ls -A /etc", user="root").split())
        host_only = {"shadow", "gshadow", "sudoers", "ssh", "cron.d", "systemd"}
        assert not etc & host_only, etc & host_only
        sockets = box.sh("find / -xdev -type s 2>/dev/null; find /run /tmp /var /dev -type s "
                         "2>/dev/null; true", user="root").split()
        assert not sockets, sockets
        devices = set(box.sh("find / -type b -o -type c 2>/dev/null; true", user="root").split())
        allowed = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
        odd = {d for d in devices if not d.startswith("/dev/pts/") and d.rsplit("/", 1)[-1] not in allowed}
        # A masked file of /proc may be /dev/null mounted over it.
        assert not {d for d in odd if not d.startswith("/proc/")}, odd


def test_the_mount_table_tells_little(api, platform):
    with api.create() as box:
        text = box.sh("cat /proc/self/mountinfo")
        assert str(platform.dir) not in text
        assert len(text.splitlines()) < 60
        kinds = {line.split(" - ")[1].split()[0] for line in text.splitlines()}
        assert not kinds & {"cgroup", "cgroup2", "sysfs", "debugfs", "securityfs", "fusectl"}, kinds


def test_only_its_own_processes_are_visible(api):
    with api.create() as box:
        # The first process, this shell and what it starts.
        pids = box.sh("ls /proc | grep -c '^[0-9]'")
        assert int(pids) <= 8
        assert box.sh("cat /proc/sys/kernel/hostname").strip() != os.uname().nodename


def test_no_secret_is_in_any_environment_or_command_line(api, platform):
    """C101."""
    with api.create(env={"MINE": "1"}) as box:
        for user in ("user", "root"):
            text = box.exec("for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; tr '\\0' ' ' "
                            "<$p/cmdline; cat $p/task/*/environ; done 2>/dev/null", user=user).out
            assert platform.key.encode() not in text
            assert str(platform.dir).encode() not in text


def test_children_have_three_descriptors(api):
    """C97."""
    with api.create() as box:
        for user in ("user", "root"):
            assert box.sh("ls /proc/self/fd", user=user).split() == ["0", "1", "2", "3"], \
                "3 is the directory that ls reads"
        for pty in (None, {"cols": 80, "rows": 24}):
            r = box.exec(["/bin/ls", "/proc/self/fd"], pty=pty)
            assert r.out.split() == [b"0", b"1", b"2", b"3"]


def test_one_sandbox_cannot_reach_another(platform, api):
    with suite.box_with_probe(platform) as a, api.create() as b:
        b.start(["python3", "-m", "http.server", "8000", "--bind", "0.0.0.0"])
        b.exec("sleep 0.5")
        r = a.exec("exec 3<>/dev/tcp/127.0.0.1/8000")
        assert r.code != 0
        # Their ids on the host differ, so even a shared object would not be theirs.
        a_map, b_map = (x.sh("cat /proc/self/uid_map") for x in (a, b))
        assert a_map != b_map

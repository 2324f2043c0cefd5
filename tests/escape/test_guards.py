"""Each guard, switched off, lets through what it is there to stop: so the tests can fail.

Test builds take `--unguarded NAMES` (src/runtime/native/guards.cc); a release refuses it. Some
attacks meet two guards, and then both are off: the second would stop it too. That is the point of
having two, and each of them has an attack of its own here as well.
"""

import subprocess

import pytest

import suite
from gbx.platform import Platform, program
from test_escape import ONLY

# guards off: (user, probes that must now get through)
OFF = {
    "seccomp": ("user", ["no_filter", "io_uring", "do_userfaultfd", "perf_event", "key_add",
                         "key_ctl", "do_personality", "modify_ldt", "do_int80", "handle_name",
                         "vsock", "do_memfd_secret", "netlink_netfilter", "tiocsti",
                         "tiocsti_high_bits"]),
    "seccomp,nested_userns": ("user", ["unshare_user", "clone_newuser", "clone_newuser_all",
                                       "clone3_newuser"]),
    # Power over one's own user namespace, but not over the host's mounts and network.
    "seccomp,caps": ("root", ["do_chroot", "unshare_mnt", "unshare_net", "unshare_pid",
                              "unshare_ipc", "unshare_uts", "unshare_cgroup", "clone_newns",
                              "clone_newnet", "clone_newpid"]),
    "caps": ("root", ["bound_sys_admin", "bound_sys_ptrace", "bound_net_admin", "bound_mknod",
                      "ptrace_init", "init_mem", "init_fd", "init_maps", "pidfd_getfd_init"]),
    # Every wall between it and the mounts, the network and the devices of the host.
    "seccomp,caps,userns,landlock": ("root", ["mount_tmpfs", "mount_proc", "mount_bind",
                                              "mount_propagation", "mount_overlay", "new_fsopen",
                                              "new_fspick", "new_open_tree",
                                              "set_hostname", "packet_socket",
                                              "raw_socket", "nice_up"]),
    "seccomp,no_new_privs,landlock": ("user", ["new_privs"]),
    "userns": ("root", ["uid_is_host_root", "host_ns_user"]),
    "netns": ("user", ["port_host", "other_interface", "host_ns_net"]),
    "netns,landlock": ("user", ["abstract_host"]),
    "pidns": ("user", ["host_ns_pid"]),
    "pidns,landlock": ("user", ["pid_host"]),
    "ipcns": ("user", ["shm_host", "host_ns_ipc"]),
    "masked_proc": ("user", ["read_kallsyms", "read_cmdline", "read_diskstats", "into_irq",
                             "into_bus", "into_fs"]),
    "masked_proc,userns": ("root", ["write_core_pattern", "write_panic", "write_vm"]),
    "root_view": ("user", ["into_mnt"]),
}


@pytest.mark.parametrize("guards", OFF)
def test_without_it_the_attack_gets_through(guards, world):
    user, probes = OFF[guards]
    p = Platform(unguarded=guards, pool=0).start()
    try:
        with p.api.create() as box:
            outcomes = suite.run_probes_from_memory(box, world, *probes, user=user)
    finally:
        p.end_clean()
    # What test_escape.py would say about these outcomes.
    held = {name: outcome for name, outcome in outcomes.items()
            if outcome != "OK" and (name not in ONLY or outcome in ONLY[name])}
    assert not held, f"still held without {guards}: {held}"


def test_without_the_root_view_a_file_of_the_host_can_be_read(world):
    p = Platform(unguarded="root_view", pool=0).start()
    try:
        with suite.box_with_probe(p) as box:
            seen = {**world, "PROBE_FILE": "/mnt" + world["PROBE_FILE"]}
            assert suite.run_probes(box, seen, "file_host")["file_host"] == "OK"
    finally:
        p.end_clean()


def test_an_unknown_guard_is_an_error():
    r = subprocess.run([program("glovebox-warden"), "--socket", "/tmp/gbx-none/w.sock", "--state-dir",
                        "/tmp/gbx-none/state", "--agent", program("glovebox-agent"), "--unguarded",
                        "nothing"], capture_output=True, timeout=20, check=False)
    assert r.returncode != 0 and b"nothing" in r.stderr

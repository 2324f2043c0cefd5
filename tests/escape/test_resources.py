"""Attacks that use things up. Every one is bounded, runs only when the kernel's own files say that
the sandbox is limited, and is followed by proof that the sandbox and its neighbour still work.
With the guard off a small amount gets through, which shows that the limit did it."""

import time

import pytest

import suite
from gbx.limits import kernel_limits
from gbx.platform import Platform
from gbx.wait import Stopwatch, until

SMALL = {"memory_bytes": 64 << 20, "disk_bytes": 64 << 20, "cpus": 0.25, "pids": 64}


@pytest.fixture(scope="module")
def neighbour(api):
    with api.create() as box:
        yield box


@pytest.fixture
def target(platform):
    with suite.box_with_probe(platform, limits=SMALL) as box:
        limits = kernel_limits(platform.agent_pid(box))
        assert limits["memory_bytes"] <= SMALL["memory_bytes"] + (16 << 20), limits
        assert limits["pids"] <= SMALL["pids"] + 16, limits
        assert limits["cpus"] <= SMALL["cpus"] + 0.05, limits
        yield box


def still_fine(box, neighbour):
    watch = Stopwatch()
    assert neighbour.exec("echo neighbour").out == b"neighbour\n"
    assert watch.s < 5
    until(lambda: box.exec("echo box", timeout_s=20).out == b"box\n", 20, "the sandbox answers")


def test_a_fork_bomb_meets_the_limit(target, neighbour):
    reached, why = suite.attack(target, "fork_bomb", 600)
    assert reached < SMALL["pids"] and why == "EAGAIN"
    still_fine(target, neighbour)


def test_zombies_meet_the_limit_and_are_gone_afterwards(target, neighbour):
    reached, why = suite.attack(target, "zombies", 600)
    assert reached < SMALL["pids"] and why == "EAGAIN"
    still_fine(target, neighbour)
    until(lambda: b"Z" not in target.exec("cat /proc/[0-9]*/stat | cut -d' ' -f3 | tr -d '\\n'").out)


def test_orphans_are_reaped(target, neighbour):
    assert suite.attack(target, "orphans", 500) == (500, "end")
    until(lambda: b"Z" not in target.exec("cat /proc/[0-9]*/stat | cut -d' ' -f3 | tr -d '\\n'").out)
    still_fine(target, neighbour)


@pytest.mark.parametrize("where", ["memory", "shm", "tmp", "memfd"])
def test_memory_meets_the_limit_wherever_it_is_put(target, neighbour, where):
    reached, why = suite.attack(target, where, 200)
    assert reached is None or reached < 100, (reached, why)
    still_fine(target, neighbour)


def test_the_hog_dies_and_not_the_agent(target, neighbour):
    pid = target.start("sleep 60")
    reached, why = suite.attack(target, "memory", 200)
    assert (reached, why) == (None, "oom")
    assert target.process(pid).get("exit_code") is None
    still_fine(target, neighbour)


def test_a_full_disk_meets_the_limit(target, neighbour):
    reached, why = suite.attack(target, "disk", 200)
    assert reached <= 64 and why in ("ENOSPC", "EDQUOT")
    still_fine(target, neighbour)


def test_inodes_meet_a_limit_or_stay_within_the_disk(target, neighbour):
    reached, why = suite.attack(target, "inodes", 200_000)
    assert reached < 200_000 and why in ("ENOSPC", "EDQUOT", "end")
    still_fine(target, neighbour)


def test_descriptors_meet_the_limit(target, neighbour):
    reached, why = suite.attack(target, "fds", 2_000_000)
    assert reached < 1_100_000 and why in ("EMFILE", "ENFILE")
    still_fine(target, neighbour)


def test_inotify_meets_a_limit_of_its_own(target, neighbour):
    reached, why = suite.attack(target, "inotify", 10_000)
    assert why in ("EMFILE", "ENOSPC")
    # C31: the neighbour has its own, and so has the host.
    assert neighbour.exec(["python3", "-c", "import ctypes; "
                           "assert ctypes.CDLL(None).inotify_init() >= 0"]).code == 0
    still_fine(target, neighbour)


def test_ptys_meet_a_limit_of_its_own(target, neighbour):
    reached, why = suite.attack(target, "ptys", 10_000)
    assert reached < 10_000 and why in ("ENOSPC", "EMFILE", "ENOMEM")
    r = neighbour.exec("tty", pty={"cols": 80, "rows": 24})
    assert r.out.startswith(b"/dev/pts/")
    still_fine(target, neighbour)


def test_an_output_flood_does_not_grow_the_platform(target, neighbour, platform):
    before = platform.resident_bytes(target)
    suite.attack(target, "output", 300)
    assert platform.resident_bytes(target) - before < 48 << 20
    still_fine(target, neighbour)


# A small share, so that also on a busy machine a program without the limit gets much more.
SLOW = {**SMALL, "cpus": 0.1}
SPIN_S = 4
SPIN_MS_MAX = SPIN_S * 1000 * SLOW["cpus"] * 1.4 + 50


def spun_ms(box):
    reached, _ = suite.attack(box, "spin", SPIN_S)
    return reached


def test_processor_time_meets_the_limit(platform, neighbour):
    with suite.box_with_probe(platform, limits=SLOW) as box:
        assert kernel_limits(platform.agent_pid(box))["cpus"] < 0.11
        assert spun_ms(box) < SPIN_MS_MAX
        still_fine(box, neighbour)


@pytest.mark.parametrize("guard,name,count,enough", [
    ("pids", "fork_bomb", 600, 600), ("memory", "memory", 160, 160), ("disk", "disk", 96, 96)])
def test_without_the_guard_it_gets_through(guard, name, count, enough):
    p = Platform(unguarded=guard, pool=0).start()
    try:
        with suite.box_with_probe(p, limits=SMALL) as box:
            reached, why = suite.attack(box, name, count)
            assert reached is not None and reached >= enough, (reached, why)
    finally:
        p.end_clean()


def test_without_the_processor_guard_it_gets_more():
    p = Platform(unguarded="cpu", pool=0).start()
    try:
        with suite.box_with_probe(p, limits=SLOW) as box:
            assert spun_ms(box) > SPIN_MS_MAX
    finally:
        p.end_clean()


def test_after_all_attacks_the_platform_stands(platform, neighbour):
    assert platform.daemon.running() and platform.warden.running()
    assert time.monotonic() and neighbour.sh("echo ok") == "ok\n"

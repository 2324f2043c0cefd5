"""kill -9 of each program at random moments under load: nothing acknowledged is lost, nothing is
left. GLOVEBOX_FAULT_S (default 12) is how long each kind of killing goes on; GLOVEBOX_FAULT_SEED
repeats a run's choices."""

import os
import random
import time

import pytest

from gbx.api import ApiError
from gbx.wait import until
from load import PASSING, Load, verify

SECONDS = float(os.environ.get("GLOVEBOX_FAULT_S", "12"))
SEED = int(os.environ.get("GLOVEBOX_FAULT_SEED", random.SystemRandom().randrange(1 << 32)))


def rounds(dice, shortest=.4, longest=2.0):
    """Yields after random pauses until the time is over."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(dice.uniform(shortest, longest))
        yield


@pytest.fixture
def p(own_platform):
    print(f"GLOVEBOX_FAULT_SEED={SEED}")
    return own_platform(pool=2)


def settle(p):
    def is_ready():
        try:
            return p.api.reply("GET", "/ready").status == 200
        except OSError:
            return False

    until(is_ready, 40, "ready again")
    # What was being made or ended when something died is brought to an end.
    until(lambda: not p.api.list_all(state="creating,stopping"), 40, "nothing half-done")


def only_known_sandboxes_run(p):
    """As many first processes as running sandboxes (and the pool): none is orphaned."""
    from gbx import leaks

    def balanced():
        known = len(p.api.list_all(state="running,paused"))
        groups = leaks.cgroup_dirs(p.cgroup)
        kinds = {}
        for path in groups:
            kinds.setdefault(os.path.dirname(path), []).append(path)
        return all(len(g) <= known + p.pool + 2 for g in kinds.values())

    until(balanced, 40, "cgroups of unknown sandboxes are gone")


def test_killing_the_daemon(p):
    dice = random.Random(SEED)
    load = Load(p.api, seed=SEED)
    for _ in rounds(dice):
        p.daemon.kill()
        time.sleep(dice.uniform(0, .3))
        p.start_daemon(ready=dice.random() < .7)
    load.stop()
    settle(p)
    verify(p, load.ledger)
    only_known_sandboxes_run(p)


def test_killing_the_warden(p):
    dice = random.Random(SEED + 1)
    load = Load(p.api, seed=SEED)
    for _ in rounds(dice):
        p.warden.kill()
        time.sleep(dice.uniform(0, .3))
        p.start_warden()
    load.stop()
    settle(p)
    verify(p, load.ledger)
    only_known_sandboxes_run(p)


def test_killing_agents(p):
    dice = random.Random(SEED + 2)
    load = Load(p.api, seed=SEED)
    for _ in rounds(dice, .3, 1.0):
        box = load.pick()
        if not box:
            continue
        with load.ledger.lock:
            load.ledger.crashed.add(box.id)
        try:
            p.kill_agent(box)
        except (ApiError, KeyError, ProcessLookupError, AssertionError, *PASSING):
            continue  # It was being deleted just then.
        until(lambda b=box: b.state in ("failed", "stopping", "stopped"), 10, "its end is noticed")
    load.stop()
    settle(p)
    verify(p, load.ledger)
    only_known_sandboxes_run(p)


def test_killing_everything(p):
    dice = random.Random(SEED + 3)
    load = Load(p.api, seed=SEED)
    for _ in rounds(dice):
        both = dice.random()
        if both < .7:
            p.daemon.kill()
        if both > .4:
            p.warden.kill()
            p.start_warden()
        if both < .7:
            p.start_daemon(ready=False)
    load.stop()
    settle(p)
    verify(p, load.ledger)
    only_known_sandboxes_run(p)


def test_a_daemon_that_died_during_creates_leaves_no_orphan(p):
    """The moment between the runtime's yes and the store's, over and over."""
    import threading
    for n in range(4):
        threads = [threading.Thread(target=quietly, args=(p.api.create,)) for _ in range(6)]
        [t.start() for t in threads]
        time.sleep(.005 * (n + 1))
        p.daemon.kill()
        [t.join(30) for t in threads]
        p.start_daemon()
    settle(p)
    p.delete_all()
    only_known_sandboxes_run(p)


def quietly(call):
    try:
        return call()
    except (ApiError, *PASSING):
        return None


def test_both_stopped_and_started_again_keep_the_sandboxes(p):
    box = p.api.create(timeout_s=600)
    box.put("kept", b"kept")
    pid = box.start("sleep 300")
    assert (p.daemon.stop(), p.warden.stop()) == (0, 0)
    p.start_warden()
    p.start_daemon()
    assert box.state == "running" and box.get("kept") == b"kept"
    assert box.process(pid).get("exit_code") is None

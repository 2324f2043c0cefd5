"""M. Scale, as far as two processors allow."""

import statistics
import threading
import time

from gbx import http, sse
from gbx.api import ApiError
from gbx.wait import Stopwatch, until


def together(count, call):
    """Runs call(n) in `count` threads; returns what they raised."""
    errors = []

    def one(n):
        try:
            call(n)
        except Exception as error:  # noqa: BLE001 - every kind is a failure here
            errors.append(f"{n}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
    [t.start() for t in threads]
    [t.join(180) for t in threads]
    return errors


def test_c142_a_burst_against_a_limit(own_platform):
    """Shortened: 120 creates against a limit of 20; kill 10, create 10, crash 5."""
    p = own_platform(config="sandboxes.max = 20\nsandboxes.queue_timeout_s = 5\n")
    made, refusals = [], []

    def one(_):
        try:
            made.append(p.api.create())
        except ApiError as error:
            assert error.status == 429 and error.headers["Retry-After"], str(error)
            refusals.append(error)

    assert not together(120, one)
    assert len(made) == 20 and len(refusals) == 100
    for box in made[:10]:
        box.delete()
    fresh = [p.api.create() for _ in range(10)]
    for box in made[10:15]:
        p.kill_agent(box)
    for box in made[15:] + fresh:
        box.delete()
    until(lambda: not p.api.list_all(state="creating,running,pausing,paused,resuming,stopping"), 15)
    again = [p.api.create() for _ in range(20)]
    assert len(again) == 20, "the counter is back to zero"


def test_c143_a_pooled_connection_survives_idling(api, platform):
    """Shortened: 12 boxes, one call each every second or two for 20 s, each on one connection; and
    one connection idle for 35 s (longer than Node's and httpx's defaults of 5 to 30 s)."""
    from gbx.api import Api
    tcp = Api(platform.tcp, platform.key)
    idle = http.Connection(platform.tcp)
    assert tcp.reply("GET", "/health", connection=idle).status == 200
    watch = Stopwatch()
    boxes = [tcp.create() for _ in range(12)]

    def talk(n):
        connection = http.Connection(platform.tcp)
        for i in range(12):
            assert boxes[n].exec(["/bin/echo", str(i)], connection=connection).out == b"%d\n" % i
            time.sleep(1 + (n % 5) * .2)
        connection.close()

    errors = together(12, talk)
    [b.delete() for b in boxes]
    assert not errors
    time.sleep(max(0, 35 - watch.s))
    assert tcp.reply("GET", "/health", connection=idle).status == 200
    idle.close()


def test_c145_more_at_once_is_not_slower(api):
    """Shortened: 48 creates by 4 and by 24 at once."""
    rates = {}
    for parallel in (4, 24):
        watch = Stopwatch()

        def many(_):
            for _ in range(48 // parallel):
                api.create().delete()

        assert not together(parallel, many)
        rates[parallel] = 48 / watch.s
    assert rates[24] > rates[4] * .5, rates


def test_c146_held_streams_do_not_starve_short_calls(api, platform):
    """Shortened: one sandbox with 200 streams, ten with 5 each."""
    one = api.create(limits={"pids": 1000})
    others = [api.create() for _ in range(10)]
    streams = []
    try:
        for n in range(200):
            streams.append(one.stream(["/bin/sleep", "120"]))
        for box in others:
            streams += [box.stream(["/bin/sleep", "120"]) for _ in range(5)]
        assert all(s.status == 200 for s in streams)
        times, errors = [], []

        def short(n):
            for _ in range(5):
                watch = Stopwatch()
                if [one, *others][n % 11].exec(["/bin/true"]).code != 0:
                    errors.append(n)
                times.append(watch.s)

        assert not together(22, short) and not errors
        assert statistics.quantiles(times, n=20)[-1] < 5, sorted(times)[-5:]
    finally:
        [s.close() for s in streams]
        [b.delete() for b in [one, *others]]


def test_c148_a_busy_sandbox_does_not_stall_its_neighbours(api):
    """Shortened: 10 neighbours; one burns its processor share and forks for 5 s."""
    boxes = [api.create() for _ in range(10)]
    busy = api.create(limits={"cpus": 0.5, "pids": 64})
    try:
        def latency():
            times = []
            for box in boxes * 2:
                watch = Stopwatch()
                box.exec(["/bin/true"])
                times.append(watch.s)
            return statistics.median(times)

        quiet = latency()
        busy.start("timeout 6 sh -c 'while :; do (true); done & while :; do :; done & "
                   "while :; do head -c 1000000 /dev/zero > /tmp/f; done'")
        time.sleep(.5)
        loud = latency()
        assert loud < quiet * 6 + .1, (quiet, loud)
    finally:
        [b.delete() for b in [*boxes, busy]]

"""A full node: creates wait their turn in order, and are refused only when the deadline passes."""

import threading
import time

from gbx.api import ApiError, refused
from gbx.wait import Stopwatch


def test_a_create_waits_for_a_place_and_gets_it(own_platform):
    p = own_platform(config="sandboxes.max = 2\nsandboxes.queue_timeout_s = 20\n")
    boxes = [p.api.create(), p.api.create()]
    got = []
    waiter = threading.Thread(target=lambda: got.append(p.api.create()))
    waiter.start()
    time.sleep(0.7)
    assert not got, "no third while two are there"
    boxes[0].delete()
    waiter.join(15)
    assert got and got[0].sh("echo hi") == "hi\n"


def test_the_deadline_gives_429_with_retry_after(own_platform):
    p = own_platform(config="sandboxes.max = 1\nsandboxes.queue_timeout_s = 1\n")
    box = p.api.create()
    watch = Stopwatch()
    error = refused(429, "exhausted", p.api.create)
    assert 0.8 < watch.s < 6
    assert int(error.headers["Retry-After"]) >= 1
    box.pause()
    refused(429, "exhausted", p.api.create)  # A paused one holds its place.
    box.delete()
    p.api.create().delete()


def test_the_queue_is_first_come_first_served(own_platform):
    p = own_platform(config="sandboxes.max = 1\nsandboxes.queue_timeout_s = 60\n")
    first = p.api.create()
    order, lock = [], threading.Lock()

    def wait(n):
        box = p.api.create()
        with lock:
            order.append(n)
        box.delete()

    threads = []
    for n in range(6):
        threads.append(threading.Thread(target=wait, args=(n,)))
        threads[-1].start()
        time.sleep(0.15)
    first.delete()
    [t.join(60) for t in threads]
    assert order == list(range(6))


def test_a_client_that_leaves_the_queue_takes_no_place(own_platform):
    p = own_platform(config="sandboxes.max = 1\nsandboxes.queue_timeout_s = 30\n")
    first = p.api.create()
    sock = p.api.address.connect()
    sock.sendall(b"POST /api/v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
    time.sleep(0.4)
    sock.close()
    time.sleep(0.4)
    first.delete()
    watch = Stopwatch()
    p.api.create().delete()
    assert watch.s < 10
    assert p.api.list_all(state="creating,running") == []


def test_exactly_the_limit_succeeds_and_the_counter_returns_to_zero(own_platform):
    """C142, smaller: 60 parallel creates against a limit of 15."""
    p = own_platform(config="sandboxes.max = 15\nsandboxes.queue_timeout_s = 4\n")
    made, errors = [], []

    def one():
        try:
            made.append(p.api.create())
        except ApiError as error:
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(60)]
    [t.start() for t in threads]
    [t.join(120) for t in threads]
    assert len(made) + len(errors) == 60
    assert len(made) == 15, [str(e) for e in errors[:3]]
    for e in errors:
        assert e.status == 429 and e.code == "exhausted" and e.headers["Retry-After"], str(e)
    assert "15" in errors[0].message or "limit" in errors[0].message.lower(), errors[0].message
    for box in made[:3]:
        p.kill_agent(box)
    for box in made[3:]:
        box.delete()
    again = [p.api.create() for _ in range(15)]
    assert len(again) == 15

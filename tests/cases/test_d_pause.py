"""D. What of pause applies to freezing in memory."""

import time

from gbx import sse
from gbx.api import event_bytes
from gbx.wait import until


def test_c50_many_cycles_keep_files(fresh):
    fresh.sh("mkdir t && cd t && git init -q . 2>/dev/null; true")
    want = None
    for n in range(10):
        fresh.sh(f"cd t && echo {n} > {n}.txt && echo {n} >> log")
        fresh.pause()
        fresh.resume()
        got = fresh.sh("cd t && cat *.txt log | sha256sum")
        assert got != want
        want = got
        assert fresh.sh("cd t && cat log | wc -l").strip() == str(n + 1)


def test_c52_streams_go_on_after_resume(fresh):
    with fresh.stream("while :; do echo tick; sleep .1; done") as s:
        pid = next(sse.events(s.chunks())).json()["pid"]
    fresh.pause()
    time.sleep(.5)
    fresh.resume()
    got = until(lambda: next((e for e in fresh.output(pid) if e.name == "stdout"), None), 5)
    assert b"tick" in event_bytes(got)


def test_c53_a_terminal_and_a_watch_survive(fresh):
    with fresh.websocket({"args": ["/bin/bash", "--norc", "-i"], "env": {"PS1": "@@ "},
                          "pty": {"cols": 80, "rows": 24}}) as s:
        s.send_json({"stdin": "X=kept\n"})
        time.sleep(.3)
        fresh.pause()
        time.sleep(.3)
        fresh.resume()
        s.send_json({"stdin": "echo $X-after\n"})
        seen = b""
        while b"kept-after" not in seen:
            message = s.message()
            assert message is not None, seen
            seen += message[1]


def test_c56_pausing_does_not_eat_the_timeout(api):
    """Shortened: seconds."""
    box = api.create(timeout_s=3, on_timeout="pause")
    box.pause()
    time.sleep(4)
    assert box.state == "paused"
    box.resume()
    assert box.state == "running"
    until(lambda: box.state == "paused", 8, "paused, not killed, the second time as well")
    box.delete()

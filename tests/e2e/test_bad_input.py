"""Wrong input gets a clear error and loses nothing (issue part 6)."""

import json
import socket
import threading
import time

import pytest

from gbx import http as h
from gbx.api import BASE, ApiError, refused
from gbx.wait import Stopwatch, until

# So that what a slow client gets can be waited for.
PLATFORM = {"config": "http.head_timeout_s = 4\nhttp.body_idle_timeout_s = 4\n"}

CREATES = {
    "unknown field": {"templat": "host"},
    "unknown limit": {"limits": {"memory": 1}},
    "template is a number": {"template": 1},
    "no such template": {"template": "nothere"},
    "timeout zero": {"timeout_s": 0},
    "timeout negative": {"timeout_s": -1},
    "timeout text": {"timeout_s": "300"},
    "timeout huge": {"timeout_s": 1e12},
    "timeout list": {"timeout_s": [1]},
    "timeout true": {"timeout_s": True},
    "idle zero": {"idle_timeout_s": 0},
    "memory negative": {"limits": {"memory_bytes": -1}},
    "memory fraction": {"limits": {"memory_bytes": 1.5}},
    "memory tiny": {"limits": {"memory_bytes": 1}},
    "cpus zero": {"limits": {"cpus": 0}},
    "cpus text": {"limits": {"cpus": "1"}},
    "pids zero": {"limits": {"pids": 0}},
    "limits list": {"limits": []},
    "env number": {"env": {"A": 1}},
    "env list": {"env": ["A=1"]},
    "env name with =": {"env": {"A=B": "x"}},
    "env name empty": {"env": {"": "x"}},
    "env value with nul": {"env": {"A": "x\0y"}},
    "labels 65": {"labels": {f"k{n}": "v" for n in range(65)}},
    "label key long": {"labels": {"k" * 129: "v"}},
    "label key empty": {"labels": {"": "v"}},
    "label value long": {"labels": {"k": "v" * 1025}},
    "label value number": {"labels": {"k": 1}},
    "label value 1 MB": {"labels": {"k": "v" * 1_000_000}},
    "name long": {"name": "n" * 129},
    "name number": {"name": 5},
    "isolation unknown": {"isolation": "none"},
    "on_timeout unknown": {"on_timeout": "explode"},
}


@pytest.mark.parametrize("name", CREATES)
def test_a_bad_create_is_refused_with_its_reason(api, name):
    before = len(api.list_all(state="creating,running"))
    refused(400, "invalid", api.create, **CREATES[name])
    assert len(api.list_all(state="creating,running")) == before


BODIES = {
    "not json": b"{", "empty": b"", "a list": b"[]", "text": b'"x"', "null": b"null",
    "two values": b"{}{}", "trailing": b"{} x", "duplicate key": b'{"name":"a","name":"b"}',
    "nested duplicate": b'{"labels":{"a":"1","a":"2"}}', "broken utf-8": b'{"name":"\xff\xfe"}',
    "overlong utf-8": b'{"name":"\xc0\x80"}', "lone surrogate": b'{"name":"\\ud800"}',
    "nan": b'{"timeout_s":NaN}', "huge number": b'{"timeout_s":1e999}', "comment": b"{/*x*/}",
    "single quotes": b"{'name':'x'}", "trailing comma": b'{"name":"x",}', "raw nul": b'{"name":"\0"}',
    "deep": b'{"labels":' * 2000 + b"1" + b"}" * 2000, "bom": b"\xef\xbb\xbf{}",
    "proto": b'{"__proto__":{"x":1}}',
}


@pytest.mark.parametrize("name", [n for n in BODIES if n != "empty"])
def test_a_body_that_is_no_request_is_refused(api, name):
    refused(400, "invalid", api.call, "POST", f"{BASE}/sandboxes", BODIES[name],
            {"Content-Type": "application/json"})


@pytest.mark.parametrize("name", [n for n in BODIES if n != "proto"])
def test_a_broken_exec_body_is_refused_and_the_sandbox_lives(box, name):
    refused(400, "invalid", box.call, "POST", "exec", BODIES[name])
    assert box.sh("echo on") == "on\n"


EXECS = {
    "nothing": {}, "both": {"cmd": "true", "args": ["true"]}, "unknown": {"cmd": "true", "xyz": 1},
    "cmd number": {"cmd": 1}, "args text": {"args": "true"}, "args empty": {"args": []},
    "args number": {"args": [1]}, "args with nul": {"args": ["a\0b"]}, "cmd with nul": {"cmd": "a\0b"},
    "env number": {"cmd": "true", "env": {"A": 1}}, "env with =": {"cmd": "true", "env": {"A=B": ""}},
    "cwd with nul": {"cmd": "true", "cwd": "/tmp\0"}, "cwd number": {"cmd": "true", "cwd": 1},
    "user number": {"cmd": "true", "user": 1}, "user missing": {"cmd": "true", "user": "zz"},
    "timeout negative": {"cmd": "true", "timeout_s": -1}, "timeout text": {"cmd": "true", "timeout_s": "1"},
    "stdin number": {"cmd": "true", "stdin": 1}, "stdin_b64 broken": {"cmd": "true", "stdin_b64": "!!"},
    "pty zero": {"cmd": "true", "pty": {"cols": 0, "rows": 0}},
    "pty huge": {"cmd": "true", "pty": {"cols": 65535, "rows": 65535}},
    "pty negative": {"cmd": "true", "pty": {"cols": -1, "rows": 10}},
    "pty absurd": {"cmd": "true", "pty": {"cols": 1e9, "rows": 10}},
    "background text": {"cmd": "true", "background": "yes"},
}


@pytest.mark.parametrize("name", EXECS)
def test_a_bad_exec_is_refused(box, name):
    refused(400, "invalid", box.call, "POST", "exec", EXECS[name])


def test_an_argument_over_128_kib_is_refused_and_one_of_that_size_works(box):
    # MAX_ARG_STRLEN counts the terminating NUL.
    fits = 128 * 1024 - 1
    assert box.exec(["/usr/bin/printf", "%s", "x" * fits]).out == b"x" * fits
    error = refused(400, "invalid", box.exec, ["/usr/bin/printf", "%s", "x" * (128 * 1024 + 1)])
    assert "128 KiB" in error.message or "131072" in error.message
    refused(400, "invalid", box.exec, "echo " + "x" * (128 * 1024))
    total = ["y" * 100_000] * 25
    refused(400, "invalid", box.exec, ["/bin/true", *total])


def test_10000_environment_variables_work_and_10001_are_refused(box):
    env = {f"V{n}": str(n) for n in range(10_000)}
    assert box.exec(["/bin/sh", "-c", "env | grep -c ^V"], env=env).out.strip() == b"10000"
    env["ONE_MORE"] = "x"
    refused(400, "invalid", box.exec, "true", env=env)


def test_huge_bodies_are_refused_early(api, box):
    for target in (f"{BASE}/sandboxes", box.path("exec"), box.path("extend")):
        watch = Stopwatch()
        reply = api.reply("POST", target, b" " * (64 << 20), timeout_s=20)
        assert reply.status == 413 and reply.json()["code"] == "too_large", reply
        assert watch.s < 15

    def endless():
        for _ in range(4096):
            yield b" " * 65536

    reply = api.reply("POST", f"{BASE}/sandboxes", endless(), timeout_s=20)
    assert reply.status == 413


def test_huge_heads_are_refused(api):
    for text in (b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
                 b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 20_000 + b"\r\n"):
        reply = h.raw(api.address, text)
        assert reply is None or reply.status in (400, 414, 431, 413), reply


def test_a_slow_client_is_cut_off_and_others_do_not_notice(platform, api):
    slow = [platform.tcp.connect(60) for _ in range(50)]
    try:
        for s in slow:
            s.sendall(b"POST /api/v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Le")
        watch = Stopwatch()
        assert api.reply("GET", "/health").status == 200 and watch.s < 2
        ended, end = 0, time.monotonic() + 20
        for s in slow:
            s.settimeout(max(0.1, end - time.monotonic()))
            try:
                while s.recv(4096):
                    pass
                ended += 1
            except (ConnectionResetError, BrokenPipeError):
                ended += 1
            except (TimeoutError, socket.timeout):
                pass
        assert ended == 50, "a head that never ends is not waited for"
    finally:
        [s.close() for s in slow]


def test_a_body_that_never_comes_is_not_waited_for_for_ever(platform):
    s = platform.tcp.connect(60)
    s.sendall(b"POST /api/v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
              + platform.key.encode() + b"\r\nContent-Length: 100\r\n\r\n{")
    watch = Stopwatch()
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
    s.close()
    assert watch.s < 20


GARBAGE = [b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
           b"\x00" * 1000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
           b"GET http://evil/ HTTP/1.1\r\nHost: x\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"]


# The first and the fourth are no request yet: they are closed when the head's time is over.
@pytest.mark.parametrize("garbage", GARBAGE, ids=[repr(g[:12]) for g in GARBAGE])
def test_garbage_is_answered_with_an_error_or_a_close(api, garbage):
    reply = h.raw(api.address, garbage)
    assert reply is None or 400 <= reply.status < 600, reply
    assert api.reply("GET", "/health").status == 200


PATHS = ["/api/v1/sandboxes/{}%2F..%2F{}", "/api/v1/sandboxes/%2e%2e/sandboxes",
         "/api/v1/../v1/sandboxes/{}", "/api/v1/sandboxes/{}%00", "/api/v1/sandboxes/..%5c{}",
         "/api/v1/sandboxes/%252e%252e", "/api/v1//sandboxes", "/api/v1/sandboxes/{}/..;/x",
         "/API/V1/sandboxes", "/api/v1/sandboxes/%zz", "/api/v1/sandboxes/{}/nothing",
         "/api/v1/sandboxes/SB-{}", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
def test_only_canonical_paths_are_routed(api, box, path):
    reply = api.reply("GET", path.format(box.id, box.id))
    assert reply.status in (400, 404) and reply.json()["code"] in ("invalid", "not_found"), reply


@pytest.mark.parametrize("method,target", [("PUT", "/api/v1/sandboxes"), ("PATCH", "/health"),
                                           ("DELETE", "/metrics"), ("BREW", "/api/v1/sandboxes")])
def test_a_wrong_method_is_said(api, method, target):
    reply = api.reply(method, target)
    assert reply.status in (404, 405, 400) and reply.json()["message"], reply


def test_ids_of_wrong_grammar_are_not_found_or_invalid(api):
    for bad in ("sb-", "sb-UPPER", "x" * 500, "sb-" + "z" * 19, "sb-" + "z" * 21, "%20", "sb-" + "_" * 20):
        assert api.reply("GET", f"{BASE}/sandboxes/{bad}").status in (400, 404)


def test_hostile_text_comes_back_as_data_only(api):
    evil = {"html": "<script>alert(1)</script>", "ansi": "\x1b]0;x\x07", "csv": "=cmd()",
            "log": "a\nlevel=error forged", "rtl": "\u202e", "null": "null"}
    with api.create(labels=evil, name="<b>=cmd()\u202e") as box:
        assert box.info()["labels"] == evil and box.info()["name"] == "<b>=cmd()\u202e"
    refused(400, "invalid", api.create, name="\x1b[31m")


def test_a_request_flood_on_one_connection_is_answered_in_order(platform):
    """Pipelining: legal, rarely right in servers."""
    s = platform.tcp.connect(20)
    s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 50
              + b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    data = b""
    while (chunk := s.recv(65536)):
        data += chunk
    s.close()
    assert data.count(b"HTTP/1.1 200") == 51


def test_the_daemon_survived_all_of_this(api, platform):
    assert platform.daemon.running() and platform.warden.running()
    with api.create() as box:
        assert box.sh("echo fine") == "fine\n"

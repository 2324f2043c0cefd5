"""A. Commands and their streams."""

import base64
import json
import os
import pathlib
import socket
import subprocess
import threading
import time

import pytest

from gbx import http, sse, ws
from gbx.api import event_bytes, refused
from gbx.platform import free_port, program
from gbx.wait import Stopwatch, until


def text_of(events, name="stdout"):
    return b"".join(event_bytes(e) for e in events if e.name == name)


def test_c01_background_child_does_not_keep_the_call_open(box):
    for line in ("sleep 20 & echo STARTED", "(sleep 20 &) ; echo STARTED",
                 "nohup sleep 20 & echo STARTED", "setsid sleep 20 & echo STARTED"):
        watch = Stopwatch()
        r = box.exec(line)
        assert watch.s < 4 and r.code == 0 and r.out == b"STARTED\n", line
    watch = Stopwatch()
    events = list(box.events("sleep 20 & echo STARTED"))
    assert watch.s < 4 and events[-1].json()["exit_code"] == 0
    assert int(box.sh("grep -lx sleep /proc/[0-9]*/comm | wc -l")) == 5, "all still run"
    box.exec("pkill sleep || kill $(grep -lx sleep /proc/[0-9]*/comm | cut -d/ -f3)")


def test_c02_the_orphan_goes_on_writing(box, platform):
    """Shortened: 16 lines in 1.6 s."""
    before = platform.resident_bytes(box)
    r = box.exec("(i=0; while [ $i -lt 16 ]; do echo tick; echo tock >&2; i=$((i+1)); sleep .1; done; "
                 "echo done > /tmp/alive) &")
    assert r.code == 0
    until(lambda: box.exec("cat /tmp/alive").out == b"done\n", 15, "the orphan finished")
    r = box.exec("(head -c 50000000 /dev/zero; echo done > /tmp/alive2) &")
    until(lambda: box.exec("cat /tmp/alive2").out == b"done\n", 20, "a flood finishes too")
    assert platform.resident_bytes(box) - before < 24 << 20


def test_c04_characters_are_never_cut(box):
    slow = ("import os, time\nfor b in '≤🙂é'.encode():\n os.write(1, bytes([b])); time.sleep(.02)")
    events = list(box.events(["python3", "-c", slow]))
    assert text_of(events).decode() == "≤🙂é"
    assert all("text" in e.json() for e in events if e.name == "stdout")
    for stream, line in (("stdout", "print('─'*200000)"),
                         ("stderr", "import sys; print('─'*200000, file=sys.stderr)")):
        events = list(box.events(["python3", "-c", line]))
        got = "".join(e.json()["text"] for e in events if e.name == stream)
        assert got == "─" * 200000 + "\n"
    events = list(box.events(["python3", "-c", "print('─'*20000)"], pty={"cols": 80, "rows": 24}))
    got = "".join(e.json().get("text", "?") for e in events if e.name == "stdout")
    assert got.replace("\r\n", "\n") == "─" * 20000 + "\n"
    r = box.exec("printf 'ok\\xff\\xfe'; echo more")
    assert r.out == b"ok\xff\xfemore\n" and r.code == 0
    assert text_of(box.events("printf 'a\\xe2\\x89'")) == b"a\xe2\x89", "a cut tail comes at the end"


def test_c05_stdin_ends_after_what_was_queued(box):
    pid = box.start("wc -c", stdin=True)
    for _ in range(10):
        assert box.stdin(pid, b"x" * 100_000).status == 204
    assert box.stdin(pid, close=True).status == 204
    assert box.stdin(pid, close=True).status in (204, 409), "closing twice is harmless"
    events = list(box.output(pid))
    assert text_of(events).strip() == b"1000000" and events[-1].json()["exit_code"] == 0
    terminal = box.start("cat", pty={"cols": 80, "rows": 24}, stdin=True)
    refused(400, "invalid", box.stdin, terminal, close=True)
    box.signal(terminal, "SIGKILL", tree=True)


def test_c07_stdin_errors_are_typed(box):
    ended = box.start("true", stdin=True)
    until(lambda: box.process(ended).get("exit_code") == 0)
    refused(409, "conflict", box.stdin, ended, b"x")
    none = box.start("sleep 5")
    refused(409, "conflict", box.stdin, none, b"x")
    refused(404, "not_found", box.stdin, 999999, b"x")
    assert box.process(ended)["exit_code"] == 0
    box.signal(none, "SIGKILL")


def test_c08_a_process_that_ends_before_its_stdin_is_fed(box):
    """Shortened: 60 times instead of 500."""
    feed = "x" * 65536
    connection = http.Connection(box.api.address)
    for _ in range(60):
        assert box.exec(["/bin/sh", "-c", "exit 3"], stdin=feed, connection=connection).code == 3
    connection.close()


def test_c10_a_stalled_reader_freezes_nobody(box):
    """Shortened: 3 s instead of 30; the stalled one has a tiny receive buffer."""
    with box.stream("while :; do date +%s.%N; head -c 20000 /dev/zero | tr '\\0' .; echo; sleep .1; done",
                    receive_buffer=2048) as stalled:
        pid = next(sse.events(stalled.chunks(256))).json()["pid"]
        time.sleep(1)
        seen, watch = 0, Stopwatch()
        for e in box.output(pid):
            seen += e.name == "stdout"
            if watch.s > 3:
                break
        assert seen >= 15
        ticks = int(box.sh("echo 1"))
        assert ticks == 1 and box.process(pid).get("exit_code") is None
    box.signal(pid, "SIGKILL", tree=True)


def test_c11_reconnect_to_a_running_command(box):
    """Shortened: 2 s away instead of 150."""
    with box.stream("for i in $(seq 300); do echo $i; sleep .1; done") as s:
        pid = next(sse.events(s.chunks())).json()["pid"]
    time.sleep(2)
    assert pid in [p["pid"] for p in box.processes() if p.get("exit_code") is None]
    lines = []
    for e in box.output(pid):
        if e.name == "stdout":
            lines += event_bytes(e).split()
        if len(lines) > 25:
            break
    assert lines[:3] == [b"1", b"2", b"3"] and len(lines) > 25, "the past, then live output"
    assert box.process(pid).get("exit_code") is None
    box.signal(pid, "SIGKILL", tree=True)


def test_c13_a_missing_command_says_so(box):
    r = box.exec("no_such_cmd_xyz --help")
    assert r.code == 127 and b"no_such_cmd_xyz" in r.err
    error = refused(404, "not_found", box.exec, ["no_such_cmd_xyz", "--help"])
    assert "no_such_cmd_xyz" in error.message
    box.put("plain", b"not a program\n", mode="0644")
    assert box.exec("./plain").code == 126
    error = refused(403, "denied", box.exec, ["/home/user/plain"])
    assert "plain" in error.message
    box.put("badline", b"#!/no/such/interpreter\n", mode="0755")
    r = box.exec("./badline")
    assert r.code in (126, 127) and b"badline" in r.err
    refused(404, "not_found", box.exec, ["/home/user/badline"])


NGINX = """
daemon off; worker_processes 1; error_log {dir}/error.log; pid {dir}/nginx.pid;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen 127.0.0.1:{port};
    location / {{ proxy_pass http://127.0.0.1:{upstream}; proxy_read_timeout {timeout}s;
                 proxy_http_version 1.1; }} }}
}}
"""


@pytest.fixture(scope="module")
def behind_nginx(platform, tmp_path_factory):
    """The platform's API as seen through nginx, with a short read timeout."""
    directory = tmp_path_factory.mktemp("nginx")
    directory.chmod(0o777)
    port = free_port()
    (directory / "conf").write_text(NGINX.format(dir=directory, port=port, upstream=platform.port,
                                                 timeout=12))
    p = subprocess.Popen(["nginx", "-p", str(directory), "-c", str(directory / "conf"), "-e",
                          str(directory / "error.log")], stderr=subprocess.DEVNULL)
    address = http.Address(host="127.0.0.1", port=port)

    def up():
        try:
            return http.request(address, "GET", "/health").status == 200
        except OSError:
            return False

    until(up, 10, "nginx answers")
    from gbx.api import Api
    yield Api(address, platform.key)
    p.terminate()
    p.wait(10)


def test_c16_a_silent_command_stays_connected(box, behind_nginx):
    """Shortened: nginx with a read timeout of 12 s in front, silent for 24 s."""
    comments = []
    events = list(behind_nginx.sandbox(box.id).events("sleep 24; echo done", comments=comments))
    assert text_of(events) == b"done\n" and events[-1].json()["exit_code"] == 0
    assert len(comments) >= 2


def test_c16_heartbeats_do_not_keep_an_idle_sandbox(api):
    """A running command does (it is use); a stream without one does not."""
    with api.create(idle_timeout_s=2, timeout_s=60) as box:
        pid = box.start("true")
        until(lambda: box.process(pid).get("exit_code") == 0)
        until(lambda: box.state == "stopped", 12, "idle end")


def test_c17_output_is_live_also_through_nginx(box, behind_nginx):
    for api in (box.api, behind_nginx):
        times = []
        b = api.sandbox(box.id)
        old = api.headers

        def gzip_headers(extra=None, old=old):
            return {**old(extra), "Accept-Encoding": "gzip"}

        api.headers = gzip_headers
        try:
            for e in b.events("for i in 1 2 3 4; do echo $i; sleep .4; done"):
                if e.name == "stdout":
                    times.append(time.monotonic())
        finally:
            api.headers = old
        assert len(times) == 4
        gaps = [b - a for a, b in zip(times, times[1:])]
        assert min(gaps) > 0.2, gaps


def test_c19_the_command_line_passes_bytes_and_exit_codes(platform, box):
    """Shortened: 60 MB instead of 300."""
    r = platform.cli("exec", "-i", box.id, "--", "wc", "-c", stdin=b"\x00\x01\x02\xff")
    assert r.stdout.strip() == b"4", r
    read, write = os.pipe()
    env = {**os.environ, "GLOVEBOX_URL": f"unix://{platform.socket}"}
    watch = Stopwatch()
    p = subprocess.run([program("glovebox"), "exec", "-i", box.id, "--", "echo", "hi"], stdin=read,
                       capture_output=True, timeout=30, check=False, env=env)
    os.close(read)
    os.close(write)
    assert p.stdout == b"hi\n" and watch.s < 10
    script = (f"head -c 60M /dev/urandom | tee >(sha256sum >&2) | {program('glovebox')} exec -i {box.id} "
              "-- sha256sum")
    p = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60, check=True, env=env)
    assert p.stdout.split()[0] == p.stderr.split()[0]
    for command, code in (("exit 5", 5), ("kill -9 $$", 137), ("kill -15 $$", 143)):
        assert platform.cli("exec", box.id, "--", "sh", "-c", command).returncode == code


def test_c20_user_directory_and_environment_are_clean(box, platform):
    r = box.exec("env; id; pwd", env={"MINE": "1"}, user="root", cwd="/tmp").out.decode()
    assert "MINE=1" in r and "uid=0(root)" in r and r.endswith("/tmp\n")
    names = {line.split("=")[0] for line in box.exec(["/usr/bin/env"]).out.decode().splitlines()}
    assert names <= {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "GLOVEBOX"}
    refused(400, "invalid", box.exec, "pwd", cwd="/does/not/exist")


def test_c22_absurd_terminal_sizes(box):
    pid = box.start("sleep 30", pty={"cols": 80, "rows": 24})
    for size in ({"cols": 0, "rows": 0}, {"cols": 65535, "rows": 65535}, {"cols": -1, "rows": -1},
                 {"cols": 1e9, "rows": 1e9}, {"cols": 1.5, "rows": 2}, {"cols": "80", "rows": 24}):
        refused(400, "invalid", box.exec, "true", pty=size)
        refused(400, "invalid", box.call, "POST", f"processes/{pid}/resize", size)
    assert box.exec("true", pty={"cols": 1, "rows": 1}).code == 0
    assert box.exec("true", pty={"cols": 4096, "rows": 4096}).code == 0
    box.signal(pid, "SIGKILL", tree=True)


def test_c23_interactive_shells_and_job_control(box):
    assert b"ok" in box.exec("bash -ic 'echo ok'", timeout_s=20).out
    assert b"ok" in box.exec("bash -ic 'echo ok'", pty={"cols": 80, "rows": 24}, timeout_s=20).out
    with box.websocket({"args": ["/bin/bash", "--norc", "-i"], "env": {"PS1": "@@ "},
                        "pty": {"cols": 80, "rows": 24}}) as s:
        def expect(text):
            seen = b""
            while text not in seen:
                message = s.message()
                assert message, seen
                if message[0] == ws.BINARY:
                    seen += message[1][1:]

        expect(b"@@ ")
        s.send_json({"stdin": "sleep 100\n"})
        time.sleep(.4)
        s.send(ws.BINARY, b"\x1a")
        expect(b"Stopped")
        s.send_json({"stdin": "bg; fg\n"})
        time.sleep(.4)
        s.send(ws.BINARY, b"\x03")
        s.send_json({"stdin": "echo ctrl-c=$?\n"})
        expect(b"ctrl-c=130")

"""Commands: as events, as one answer, over a WebSocket; stdin, signals, timeouts, limits."""

import base64
import json
import threading
import time

import pytest

from gbx import http, sse, ws
from gbx.api import ApiError, event_bytes, refused
from gbx.wait import Stopwatch, until


def test_one_answer_has_everything(box):
    r = box.exec("echo out; echo err >&2; exit 3")
    assert r == {**r, "exit_code": 3, "signal": None, "timed_out": False, "oom_killed": False,
                 "stdout": "out\n", "stderr": "err\n", "stdout_truncated": False,
                 "stderr_truncated": False}
    assert r["pid"] > 1 and 0 <= r["duration_ms"] < 10000


def test_arguments_reach_the_program_unchanged(box):
    awkward = ["a b", "", "'\"$HOME`", "\n", "ü≤🙂", "-n", "*"]
    r = box.exec(["/usr/bin/printf", "%s\\0", *awkward])
    assert r.out.split(b"\0")[:-1] == [a.encode() for a in awkward]


def test_events_come_in_order_and_exit_is_last(box):
    events = list(box.events("echo one; sleep 0.2; echo two >&2; sleep 0.2; echo three"))
    assert events[0].name == "start" and events[0].json()["pid"] > 1
    assert [(e.name, event_bytes(e)) for e in events[1:-1]] == [
        ("stdout", b"one\n"), ("stderr", b"two\n"), ("stdout", b"three\n")]
    end = events[-1].json()
    assert events[-1].name == "exit" and end["exit_code"] == 0
    assert end["timed_out"] is False and end["oom_killed"] is False and end["duration_ms"] >= 300
    cursors = [e.json()["cursor"] for e in events[1:-1]]
    assert cursors == sorted(cursors)


def test_stream_headers_forbid_buffering(box):
    with box.stream("true") as s:
        assert s.status == 200
        assert s.headers["Content-Type"].startswith("text/event-stream")
        assert "no-cache" in s.headers["Cache-Control"]
        assert s.headers["X-Accel-Buffering"] == "no"
        assert s.headers.get("Content-Encoding") is None


def test_a_signal_death_is_128_and_the_signal(box):
    r = box.exec("kill -9 $$")
    assert r.code == 137 and r["signal"] in ("SIGKILL", 9)


def test_environment_is_the_documented_one_and_the_callers(box):
    env = dict(line.split("=", 1) for line in
               box.exec(["/usr/bin/env"], env={"MINE": "1", "LANG": "C"}).out.decode().splitlines())
    assert set(env) == {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "GLOVEBOX", "MINE"}
    assert env["HOME"] == "/home/user" and env["USER"] == env["LOGNAME"] == "user"
    assert env["GLOVEBOX"] == "1" and env["MINE"] == "1" and env["LANG"] == "C"


def test_user_and_cwd_are_honoured(box):
    assert box.sh("id -un; pwd") == "user\n/home/user\n"
    assert box.sh("id -un; pwd", user="root", cwd="/tmp") == "root\n/tmp\n"
    assert box.sh("id -u", user="root") == "0\n"
    refused(400, "invalid", box.exec, "true", user="nobody-here")
    error = refused(400, "invalid", box.exec, "true", cwd="/not/there")
    assert "/not/there" in error.message
    refused(400, "invalid", box.exec, "true", cwd="/etc/passwd")


def test_stdin_text_is_fed_and_closed(box):
    assert box.exec("wc -c", stdin="x" * 100000).out.strip() == b"100000"
    data = bytes(range(256)) * 64
    r = box.exec("sha256sum", stdin_b64=base64.b64encode(data).decode())
    import hashlib
    assert r.out.split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert box.exec("cat").out == b"", "without stdin a reader sees the end at once"


def test_stdin_stays_open_until_closed(box):
    pid = box.start("cat", stdin=True)
    assert box.stdin(pid, b"hello ").status == 204
    assert box.stdin(pid, b"\xff\x00world").status == 204
    assert box.process(pid)["pid"] == pid
    assert box.stdin(pid, close=True).status == 204
    out = b"".join(event_bytes(e) for e in box.output(pid) if e.name == "stdout")
    assert out == b"hello \xff\x00world"


def test_process_errors_are_typed(box):
    refused(404, "not_found", box.process, 999999)
    refused(404, "not_found", box.stdin, 999999, b"x")
    refused(404, "not_found", box.signal, 999999, "SIGTERM")
    silent = box.start("sleep 30")
    refused(409, "conflict", box.stdin, silent, b"x")
    refused(400, "invalid", box.signal, silent, "SIGNOTHING")
    refused(400, "invalid", box.signal, silent, 0)
    refused(400, "invalid", box.call, "POST", f"processes/{silent}/resize", {"cols": 0, "rows": 1})
    assert box.signal(silent, 9).status == 204
    until(lambda: box.process(silent).get("exit_code") == 137)


def test_signal_reaches_the_process_and_tree_reaches_all(box):
    pid = box.start("trap 'echo got; exit 5' TERM; while :; do sleep 0.05; done")
    time.sleep(0.3)
    assert box.signal(pid, "SIGTERM").status == 204
    assert [e.json()["exit_code"] for e in box.output(pid) if e.name == "exit"] == [5]
    pid = box.start("setsid sh -c 'sleep 77 & sleep 77' & sleep 77")
    until(lambda: box.sh("grep -lx sleep /proc/[0-9]*/comm | wc -l").strip() == "3")
    assert box.signal(pid, "SIGKILL", tree=True).status == 204
    until(lambda: box.exec("grep -lx sleep /proc/[0-9]*/comm").out == b"", 5, "all dead")


def test_a_timeout_kills_everything_that_was_started(box):
    watch = Stopwatch()
    r = box.exec("(setsid sh -c 'sleep 88; :' &) ; (sleep 88 &) ; echo before; sleep 88", limit_s=1)
    assert watch.s < 5 and r["timed_out"] is True and r.code == 137 and r.out == b"before\n"
    until(lambda: box.exec("grep -lx sleep /proc/[0-9]*/comm").out == b"", 5, "nothing survives")


def test_hanging_up_leaves_the_process_and_the_option_kills_it(box):
    with box.stream("while :; do echo tick; sleep 0.1; done") as s:
        pid = next(sse.events(s.chunks())).json()["pid"]
    time.sleep(0.5)
    assert box.process(pid).get("exit_code") is None
    got = next(e for e in box.output(pid) if e.name == "stdout")
    assert b"tick" in event_bytes(got)
    box.signal(pid, "SIGKILL", tree=True)
    with box.stream("sleep 60", kill_on_disconnect=True) as s:
        pid = next(sse.events(s.chunks())).json()["pid"]
    until(lambda: box.process(pid).get("exit_code") is not None, 5, "killed")


def test_output_can_be_read_again_from_a_cursor(box):
    pid = box.start("echo abc; echo def; sleep 0.1; echo ghi")
    first = list(box.output(pid))
    assert b"".join(event_bytes(e) for e in first if e.name == "stdout") == b"abc\ndef\nghi\n"
    assert first[-1].name == "exit"
    rest = b"".join(event_bytes(e) for e in box.output(pid, **{"from": 4}) if e.name == "stdout")
    assert rest == b"def\nghi\n"
    refused(404, "not_found", lambda: list(box.output(999999)))


def test_output_without_following_ends_at_what_there_is(box):
    pid = box.start("echo now; sleep 30")
    until(lambda: [e for e in box.output(pid, follow=0) if e.name == "stdout"])
    watch = Stopwatch()
    events = list(box.output(pid, follow=0))
    assert watch.s < 3 and [e.name for e in events if e.name in ("stdout", "exit")] == ["stdout"]
    box.signal(pid, "SIGKILL", tree=True)


def test_background_answers_at_once_and_the_list_shows_it(box):
    watch = Stopwatch()
    answer = box.exec("sleep 1", background=True, tag="my tag")
    assert watch.s < 1 and set(answer) == {"pid"}
    mine = [p for p in box.processes() if p["pid"] == answer["pid"]]
    assert mine and mine[0]["tag"] == "my tag"


def test_a_missing_program_is_named(box):
    error = refused(404, "not_found", box.exec, ["no_such_program_xyz", "--help"])
    assert "no_such_program_xyz" in error.message
    r = box.exec("no_such_program_xyz --help")
    assert r.code == 127 and b"no_such_program_xyz" in r.err


def test_more_output_than_is_kept_is_cut_at_the_front_and_said(box):
    r = box.exec("head -c 20000000 /dev/zero | tr '\\0' x; echo END", timeout_s=60)
    assert r["stdout_truncated"] is True and r["stderr_truncated"] is False
    assert r.out.endswith(b"xxxEND\n") and 8_000_000 < len(r.out) <= (8 << 20) + 4


def test_a_slow_reader_is_told_what_it_lost(box):
    with box.stream("head -c 30000000 /dev/zero | tr '\\0' y; sleep 0.3; echo END",
                    receive_buffer=4096) as s:
        reader = sse.events(s.chunks())
        assert next(reader).name == "start"
        time.sleep(8)  # It is waited for a while (5 s), then the command goes on without us.
        total = lost = 0
        last = b""
        for e in reader:
            if e.name == "stdout":
                last = event_bytes(e)
                total += len(last)
            elif e.name == "lost":
                lost += e.json()["bytes"]
            elif e.name == "exit":
                assert e.json()["exit_code"] == 0
    assert lost > 0 and total + lost == 30_000_004 and last.endswith(b"END\n")


def test_bytes_that_are_no_text_come_as_base64(box):
    events = [e for e in box.events("printf '\\377\\376'") if e.name == "stdout"]
    assert b"".join(event_bytes(e) for e in events) == b"\xff\xfe"
    assert all("b64" in e.json() for e in events)
    r = box.exec("printf '\\377\\376'")
    assert "stdout" not in r and r.out == b"\xff\xfe"


def test_a_silent_command_gets_heartbeats(box):
    comments = []
    events = list(box.events("sleep 11; echo done", comments=comments))
    assert events[-1].name == "exit" and len(comments) >= 1


def test_many_at_once_keep_their_own_output(box):
    wrong = []

    def one(n):
        r = box.exec(["/bin/sh", "-c", f"echo {n}; sleep 0.1; echo {n} >&2; exit {n}"])
        if (r.out, r.err, r.code) != (b"%d\n" % n, b"%d\n" % n, n):
            wrong.append((n, dict(r)))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(40)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not wrong


def test_oom_kill_is_told(api):
    with api.create(limits={"memory_bytes": 64 << 20}) as box:
        r = box.exec(["python3", "-c", "x = b'x' * (200 << 20)"])
        assert r.code == 137 and r["oom_killed"] is True
        assert box.sh("echo alive") == "alive\n"
        assert box.metrics()["oom_kills"] >= 1


# WebSocket.

def drain(socket):
    out, events = {1: b"", 2: b""}, []
    while (message := socket.message()) is not None:
        opcode, payload = message
        if opcode == ws.BINARY:
            out[payload[0]] += payload[1:]
        else:
            events.append(json.loads(payload))
            if events[-1]["event"] in ("exit", "error"):
                break
    return out, events


def test_websocket_carries_both_streams_and_the_exit(box):
    with box.websocket({"cmd": "echo out; echo err >&2; exit 4"}) as s:
        out, events = drain(s)
    assert out == {1: b"out\n", 2: b"err\n"}
    assert events[0]["event"] == "start" and events[0]["pid"] > 1
    assert events[-1]["event"] == "exit" and events[-1]["exit_code"] == 4


def test_websocket_takes_stdin_and_its_end(box):
    with box.websocket({"args": ["cat"], "stdin": True}) as s:
        s.send_json({"stdin": "text ≤ "})
        s.send(ws.BINARY, b"\x00\xff")
        s.send_json({"close_stdin": True})
        out, events = drain(s)
    assert out[1] == "text ≤ ".encode() + b"\x00\xff" and events[-1]["exit_code"] == 0


def test_websocket_takes_signals(box):
    with box.websocket({"args": ["sleep", "60"]}) as s:
        assert json.loads(s.message()[1])["event"] == "start"
        s.send_json({"signal": "SIGTERM"})
        _, events = drain(s)
    assert events[-1]["exit_code"] == 143


def test_websocket_errors_are_said(box):
    with box.websocket({"args": ["no_such_program_xyz"]}) as s:
        _, events = drain(s)
        assert events[-1]["event"] == "error" and events[-1]["code"] == "not_found"
    with box.websocket() as s:
        s.send(ws.TEXT, b"{not json")
        _, events = drain(s)
        assert events[-1]["event"] == "error" and events[-1]["code"] == "invalid"
    with pytest.raises(ws.Refused) as refusal:
        box.api.sandbox("sb-" + "z" * 20).websocket()
    assert refusal.value.status == 404


def test_websocket_large_stdin_arrives_whole(box):
    data = b"0123456789abcdef" * 65536
    with box.websocket({"cmd": "wc -c; ", "stdin": True}) as s:
        for at in range(0, len(data), 32768):
            s.send(ws.BINARY, data[at:at + 32768])
        s.send_json({"close_stdin": True})
        out, _ = drain(s)
    assert out[1].strip() == str(len(data)).encode()


def test_get_exec_without_upgrade_is_refused(box):
    assert 400 <= box.reply("GET", "exec").status < 500

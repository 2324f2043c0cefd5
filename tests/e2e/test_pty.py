"""Terminals."""

import json
import time

from gbx import ws
from gbx.api import event_bytes, refused
from gbx.wait import until


def read_until(socket, text, within_s=10):
    seen, end = b"", time.monotonic() + within_s
    while text not in seen:
        assert time.monotonic() < end, f"{text!r} not in {seen!r}"
        message = socket.message(within_s)
        assert message is not None, f"closed; {text!r} not in {seen!r}"
        if message[0] == ws.BINARY:
            assert message[1][0] == 1, "a terminal has one stream"
            seen += message[1][1:]
        elif json.loads(message[1])["event"] == "exit":
            raise AssertionError(f"ended; {text!r} not in {seen!r}")
    return seen


def test_a_terminal_has_its_size_term_and_is_a_tty(box):
    r = [event_bytes(e) for e in box.events("tty; stty size; echo $TERM", pty={"cols": 91, "rows": 33})
         if e.name == "stdout"]
    text = b"".join(r).replace(b"\r\n", b"\n").decode()
    assert text.startswith("/dev/pts/") and "33 91\n" in text and text.splitlines()[2]


def test_resize_is_seen_by_the_program(box):
    pid = box.start("trap 'stty size' WINCH; while :; do sleep 0.05; done", pty={"cols": 80, "rows": 24})
    time.sleep(0.4)
    assert box.reply("POST", f"processes/{pid}/resize", {"cols": 100, "rows": 50}).status == 204
    until(lambda: b"50 100" in b"".join(event_bytes(e) for e in box.output(pid, follow=0)
                                        if e.name == "stdout"))
    box.signal(pid, "SIGKILL", tree=True)


def test_an_interactive_shell_over_websocket(box):
    with box.websocket({"args": ["/bin/bash", "--norc", "-i"], "env": {"PS1": "READY> "},
                        "pty": {"cols": 80, "rows": 24}}) as s:
        read_until(s, b"READY> ")
        s.send_json({"stdin": "echo $((6*7))\n"})
        read_until(s, b"42\r\n")
        s.send_json({"resize": {"cols": 77, "rows": 22}})
        s.send_json({"stdin": "stty size\n"})
        read_until(s, b"22 77")
        s.send_json({"stdin": "sleep 100\n"})
        time.sleep(0.5)
        s.send(ws.BINARY, b"\x03")
        s.send_json({"stdin": "echo after-$?\n"})
        read_until(s, b"after-130")
        s.send_json({"stdin": "sleep 200\n"})
        time.sleep(0.5)
        s.send(ws.BINARY, b"\x1a")
        read_until(s, b"Stopped")
        s.send_json({"stdin": "kill %1; exit 6\n"})
        s.send_json({"stdin": "exit 6\n"})
        while (message := s.message()) is not None:
            if message[0] == ws.TEXT and json.loads(message[1])["event"] == "exit":
                assert json.loads(message[1])["exit_code"] == 6
                break
        else:
            raise AssertionError("no exit event")


def test_closing_a_terminals_stdin_is_refused_and_ctrl_d_ends_it(box):
    pid = box.start("cat; echo over", pty={"cols": 80, "rows": 24}, stdin=True)
    refused(400, "invalid", box.stdin, pid, close=True)
    assert box.stdin(pid, b"line\n\x04").status == 204
    text = b"".join(event_bytes(e) for e in box.output(pid) if e.name == "stdout")
    assert b"over" in text


def test_ending_the_shell_ends_its_jobs(box):
    pid = box.start("sleep 99 & sleep 99 & wait", pty={"cols": 80, "rows": 24})
    until(lambda: box.sh("grep -lx sleep /proc/[0-9]*/comm | wc -l").strip() == "2")
    assert box.signal(pid, "SIGKILL", tree=True).status == 204
    until(lambda: box.exec("grep -lx sleep /proc/[0-9]*/comm").out == b"")

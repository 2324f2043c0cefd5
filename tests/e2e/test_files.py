"""The file calls."""

import base64
import hashlib
import os
import threading
import time

import pytest

from gbx import http, sse
from gbx.api import refused
from gbx.wait import until


def test_bytes_come_back_exactly(box):
    for name, data in {"png": b"\x89PNG\r\n\x1a\n", "empty": b"", "ff": b"\xff",
                       "utf16": "añ≤".encode("utf-16")}.items():
        entry = box.put(name, data)
        assert entry["path"] == f"/home/user/{name}" and entry["size"] == len(data)
        assert entry["type"] == "file" and entry["owner"] == "user"
        assert box.get(name) == data


def test_a_written_file_has_the_mode_asked_for(box):
    assert box.put("script.sh", b"#!/bin/sh\necho ran\n", mode="0755")["mode"] == "0755"
    assert box.exec(["/home/user/script.sh"]).out == b"ran\n"
    assert box.put("plain", b"")["mode"] == "0644"
    refused(400, "invalid", box.put, "x", b"", mode="9999")
    refused(400, "invalid", box.put, "x", b"", mode="rwx")


def test_parents_are_made_when_asked(box):
    assert box.put("a/b/c/file", b"x", parents=1)["path"] == "/home/user/a/b/c/file"
    refused(404, "not_found", box.put, "q/r/s/file", b"x", parents=0)


def test_replacing_is_atomic(box):
    box.put("atomic", b"A" * 300_000)
    wrong, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            data = box.get("atomic")
            if len(data) != 300_000 or data.count(data[:1]) != 300_000:
                wrong.append(len(data))

    reader = threading.Thread(target=read)
    reader.start()
    for letter in b"BCDEFGHIJK":
        box.put("atomic", bytes([letter]) * 300_000)
    stop.set()
    reader.join(30)
    assert not wrong


def test_a_cut_upload_leaves_nothing(box):
    box.sh("mkdir -p cut && rm -rf cut/*")
    sock = box.api.address.connect()
    head = (f"PUT {box.file_target('files', 'cut/partial')} HTTP/1.1\r\nHost: x\r\n"
            + "".join(f"{k}: {v}\r\n" for k, v in box.api.headers().items())
            + "Content-Length: 1000000\r\n\r\n")
    sock.sendall(head.encode() + b"z" * 500_000)
    time.sleep(0.3)
    sock.close()
    until(lambda: box.sh("ls -A cut") == "", 5, "no temporary file either")


def test_ranges(box):
    data = os.urandom(100_000)
    box.put("ranged", data)
    target = box.file_target("files", "ranged")

    def get(value, method="GET", **more):
        return box.api.reply(method, target, headers={"Range": value, **more})

    first = get("bytes=0-9")
    assert first.status == 206 and first.body == data[:10]
    assert first.headers["Content-Range"] == "bytes 0-9/100000"
    assert get("bytes=99990-").body == data[99990:]
    assert get("bytes=-5").body == data[-5:]
    assert get("bytes=500-1000000").body == data[500:]
    beyond = get("bytes=100000-")
    assert beyond.status == 416 and beyond.headers["Content-Range"] == "bytes */100000"
    for bad in ("bytes=5-2", "bytes=x-", "lines=1-2", "bytes=0-1,5-6"):
        assert get(bad).status in (200, 206, 416)
        if get(bad).status == 200:
            assert get(bad).body == data
    whole = box.api.reply("GET", target)
    assert whole.headers["ETag"] and whole.headers["Last-Modified"]
    assert whole.headers["Accept-Ranges"] == "bytes"
    head = box.api.reply("HEAD", target)
    assert head.status == 200 and head.headers["Content-Length"] == "100000" and head.body == b""
    assert head.headers["ETag"] == whole.headers["ETag"]


def test_a_big_file_streams_both_ways(box, platform):
    size = 200 << 20
    block = os.urandom(1 << 20)

    def blocks():
        for _ in range(size >> 20):
            yield block

    before = platform.resident_bytes(box)
    peak = {"value": before}
    stop = threading.Event()

    def watch():
        while not stop.wait(0.05):
            peak["value"] = max(peak["value"], platform.resident_bytes(box))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        assert box.put("big", blocks(), timeout_s=120)["size"] == size
        with http.Streaming(box.api.address, "GET", box.file_target("files", "big"),
                            box.api.headers(), timeout_s=120) as s:
            digest, length = hashlib.sha256(), 0
            for chunk in s.chunks(1 << 20):
                digest.update(chunk)
                length += len(chunk)
    finally:
        stop.set()
        watcher.join()
        box.exec("rm -f big")
    assert length == size
    assert digest.digest() == hashlib.sha256(block * (size >> 20)).digest()
    assert peak["value"] - before < 24 << 20, "no program holds the file in memory"


def test_stat_list_mkdir_move_remove_chmod(box):
    made = box.files("mkdir", path="d1/d2", mode="0750", parents=True).json()
    assert made["type"] == "dir" and made["mode"] == "0750"
    assert box.files("mkdir", path="d1/d2", parents=True).status == 200
    box.put("d1/f", b"x")
    refused(409, "conflict", box.files, "mkdir", path="d1/f", parents=True)
    box.sh("ln -s /nowhere/at/all d1/link")
    link = box.stat("d1/link")
    assert link["type"] == "symlink" and link["target"] == "/nowhere/at/all"
    names = [(e["name"], e["type"]) for e in box.list("d1")["entries"]]
    assert names == [("d2", "dir"), ("f", "file"), ("link", "symlink")]
    moved = box.files("move", **{"from": "d1/f", "to": "d1/d2/g"}).json()
    assert moved["path"] == "/home/user/d1/d2/g"
    box.put("d1/h", b"h")
    refused(409, "conflict", box.files, "move", **{"from": "d1/h", "to": "d1/d2/g", "replace": False})
    assert box.files("move", **{"from": "d1/h", "to": "d1/d2/g", "replace": True}).status == 200
    assert box.get("d1/d2/g") == b"h"
    assert box.files("chmod", path="d1/d2/g", mode="0600").json()["mode"] == "0600"
    depth = [e["name"] for e in box.list("d1", depth=2)["entries"]]
    assert depth == ["d2", "g", "link"]
    refused(409, "conflict", box.remove, "d1")
    assert box.remove("d1", recursive=1).status == 204
    refused(404, "not_found", box.remove, "d1", recursive=1)


def test_the_right_error_kind(box):
    refused(404, "not_found", box.get, "missing")
    refused(404, "not_found", box.stat, "missing")
    refused(404, "not_found", box.list, "missing")
    refused(400, "invalid", box.get, "/home/user")
    box.put("afile", b"x")
    assert refused(400, "invalid", box.list, "afile")
    box.sh("install -m 600 /dev/null /tmp/roots", user="root")
    refused(403, "denied", box.get, "/tmp/roots")
    refused(403, "denied", box.put, "/usr/bin/x", b"x")
    assert box.get("/tmp/roots", user="root") == b""
    missing = refused(404, "not_found", box.api.sandbox("sb-" + "z" * 20).get, "x")
    assert "sandbox" in missing.message.lower()


def test_files_act_with_the_users_rights(box):
    assert box.put("/tmp/byroot", b"x", user="root")["owner"] == "root"
    assert box.put("byuser", b"x")["uid"] == int(box.sh("id -u"))
    refused(400, "invalid", box.get, "byuser", user="no-such-user")


def test_special_files_do_not_hang(box):
    box.sh("mkfifo -m 666 fifo; [ -e null ] || ln -s /dev/zero zero")
    for path in ("fifo", "/dev/zero", "zero", "/proc/self/pagemap"):
        reply = box.api.reply("GET", box.file_target("files", path), timeout_s=5)
        assert reply.status in (400, 403, 404), (path, reply)


AWKWARD = ["new\nline", "-rf", "trailing ", "dot.", "é", "é", "n" * 255, "%2e%2e", "back\\slash",
           "quote\"'", "$HOME", "*", "tab\t", "​zero", "‮rtl", "\x1b[31mred", "con", "a;b", "ÿ"]


@pytest.mark.parametrize("name", AWKWARD, ids=[repr(n)[:20] for n in AWKWARD])
def test_awkward_names_work(box, name):
    path = f"awkward/{name}"
    assert box.put(path, b"x", parents=1)["name"] == name
    assert box.get(path) == b"x"
    assert name in [e["name"] for e in box.list("awkward")["entries"]]
    assert box.remove(path).status == 204


def test_names_that_are_no_text_are_given_in_base64(box):
    raw = b"/home/user/raw/\xff\xfe.bin"
    box.files("mkdir", path="raw")
    box.put(raw, b"x")
    (entry,) = box.list("raw")["entries"]
    assert base64.b64decode(entry["path_b64"]) == raw and "�" in entry["path"]
    assert box.get(raw) == b"x"
    assert box.remove(raw).status == 204


def test_nul_and_too_long_names_are_refused(box):
    for path in ("a\0b", "/" + "x" * 5000, "y" * 256):
        refused(400, "invalid", box.get, path)
        refused(400, "invalid", box.put, path, b"")
    refused(400, "invalid", box.get, b"a\0b")


def test_root_is_never_left(box):
    box.sh("mkdir -p jail/in; echo out > outside; ln -sf ../outside jail/link; "
           "ln -sfn / jail/slash; ln -sfn in jail/ok; echo in > jail/in/f")
    assert box.get("in/f", root="jail") == b"in\n"
    assert box.get("ok/f", root="jail") == b"in\n"
    for path in ("../outside", "link", "slash/etc/passwd", "in/../../outside", "/home/user/outside"):
        reply = box.api.reply("GET", box.file_target("files", path, root="jail"))
        assert reply.status in (400, 403, 404), (path, reply)
    reply = box.api.reply("PUT", box.file_target("files", "slash/tmp/escaped", root="jail"), b"x")
    assert reply.status in (400, 403, 404)
    assert box.exec("test -e /tmp/escaped").code == 1


def test_a_link_swapped_in_a_loop_never_wins(box):
    box.sh("mkdir -p race/real race/other; echo good > race/real/f; mkdir -p secret; "
           "echo bad > secret/f; ln -sfn ../secret race/evil; ln -sfn real race/cur")
    pid = box.start("while :; do ln -sfn ../secret race/t; mv -T race/t race/cur; "
                    "ln -sfn real race/t; mv -T race/t race/cur; done")
    seen = set()
    for _ in range(300):
        reply = box.api.reply("GET", box.file_target("files", "cur/f", root="race"))
        seen.add(reply.body if reply.status == 200 else reply.status)
    box.signal(pid, "SIGKILL", tree=True)
    assert b"bad\n" not in seen and b"good\n" in seen


def test_listing_pages_in_order(box):
    box.sh("rm -rf many; mkdir many; cd many; for i in $(seq 2500); do : > f$i; done")
    seen, cursor = [], None
    while True:
        page = box.list("many", cursor=cursor, limit=1000)
        assert len(page["entries"]) <= 1000
        seen += [e["path"] for e in page["entries"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert len(seen) == 2500 and seen == sorted(seen)
    box.remove("many", recursive=1)


def test_watch_tells_changes_below_recursively(box):
    box.sh("rm -rf watched; mkdir -p watched/sub")
    events = []
    with http.Streaming(box.api.address, "GET",
                        box.file_target("files/watch", "watched", recursive=1),
                        {**box.api.headers(), "Accept": "text/event-stream"}, timeout_s=15) as s:
        assert s.status == 200

        def read():
            try:
                for e in sse.events(s.chunks()):
                    events.append((e.json().get("type", e.name), e.json().get("path")))
            except (OSError, ValueError, AttributeError):
                pass

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        time.sleep(0.3)
        box.sh("echo 1 > watched/a; echo 2 > watched/sub/b; mkdir watched/new; sleep 0.3; "
               "echo 3 > watched/new/c; mv watched/a watched/z; rm watched/sub/b")

        def told(kind, name):
            return any(t == kind and p.endswith(name) for t, p in events)

        for kind, name in (("create", "watched/a"), ("create", "sub/b"), ("create", "new/c"),
                           ("rename", "watched/z"), ("remove", "sub/b"), ("modify", "watched/a")):
            until(lambda k=kind, n=name: told(k, n) or (k == "rename" and told(k, "watched/a")), 5,
                  f"{kind} {name} in {events}")


def test_a_full_disk_is_said_and_recovers(api):
    with api.create(limits={"disk_bytes": 64 << 20}) as box:
        def blocks():
            for _ in range(100):
                yield b"x" * (1 << 20)

        error = refused(507, "exhausted", box.put, "toobig", blocks())
        assert "space" in error.message.lower() or "disk" in error.message.lower()
        assert box.exec("ls toobig").code != 0
        r = box.exec("head -c 100000000 /dev/zero > ~/fill; echo code $?")
        assert b"code 1" in r.out and b"No space" in r.err
        box.sh("rm -f ~/fill")
        assert box.put("fits", b"x" * 1000)["size"] == 1000
        assert box.sh("echo alive") == "alive\n"


def test_listening_ports_are_listed(box):
    pid = box.start(["python3", "-m", "http.server", "8123", "--bind", "127.0.0.1"])
    until(lambda: 8123 in [p["port"] for p in box.call("GET", "ports").json()["ports"]], 10)
    (port,) = [p for p in box.call("GET", "ports").json()["ports"] if p["port"] == 8123]
    assert port["address"] == "127.0.0.1"
    box.signal(pid, "SIGKILL", tree=True)

"""B. Files."""

import base64
import os
import threading
import time

from gbx import http
from gbx.api import refused
from gbx.wait import Stopwatch, until


def test_c25_bytes_are_bytes(box):
    for name, data in {"png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "empty": b"", "ff": b"\xff",
                       "utf16": "x≤".encode("utf-16-le"), "crlf": b"a\r\nb\n"}.items():
        box.put(name, data)
        assert box.get(name) == data
        assert box.exec(["/bin/cat", name]).out == data


def test_c26_large_slow_and_parallel_uploads(box, platform):
    """Shortened: 4 at once of 40 MB; one slow upload of 8 s instead of more than 60."""
    before = platform.resident_bytes(box)
    block = os.urandom(1 << 20)
    peak, stop = [before], threading.Event()

    def watch():
        while not stop.wait(.05):
            peak.append(platform.resident_bytes(box))

    def upload(n):
        box.put(f"up{n}", iter([block] * 40), timeout_s=120)

    def slowly():
        def drip():
            for _ in range(40):
                time.sleep(.2)
                yield block[:10000]
        box.put("slow", drip(), timeout_s=120)

    threads = [threading.Thread(target=upload, args=(n,)) for n in range(4)]
    threads += [threading.Thread(target=slowly), threading.Thread(target=watch)]
    [t.start() for t in threads]
    [t.join(120) for t in threads[:-1]]
    stop.set()
    threads[-1].join()
    assert [box.stat(f"up{n}")["size"] for n in range(4)] == [40 << 20] * 4
    assert box.stat("slow")["size"] == 400_000
    assert max(peak) - before < 32 << 20
    box.sh("rm -f up* slow")


def test_c28_a_link_at_the_end_acts_with_the_users_rights(box):
    box.sh("ln -sf /etc/cron.d/x notes.md; ln -sf /outside/new draft; ln -sfn / r")
    reply = box.api.reply("PUT", box.file_target("files", "notes.md"), b"X")
    assert reply.status in (200, 403, 404), "replaced as a link, or refused"
    assert box.exec("test -e /etc/cron.d/x").code == 1
    reply = box.api.reply("PUT", box.file_target("files", "draft"), b"X")
    assert box.exec("test -e /outside/new").code == 1
    refused(403, "denied", box.get, "r/proc/1/environ")


def test_c29_host_files_are_never_read_by_a_name_from_inside(box, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("host secret")
    box.sh(f"mkdir -p dl; ln -sf /etc/shadow dl/a; ln -sf {secret} dl/b; ln -sf ../../../../../../{secret} dl/c")
    for name in ("a", "b", "c"):
        reply = box.api.reply("GET", box.file_target("files", f"dl/{name}"))
        assert reply.status in (403, 404) and b"host secret" not in reply.body
    assert {e["type"] for e in box.list("dl")["entries"]} == {"symlink"}


def test_c31_watches_of_one_sandbox_do_not_break_another(api):
    """Shortened: 2,000 directories, or as many as its own limit allows."""
    with api.create() as a, api.create() as b:
        r = a.exec("mkdir -p w; cd w; for i in $(seq 2000); do mkdir -p d$i; done; python3 - <<'X'\n"
                   "import ctypes, os, sys, time\nc = ctypes.CDLL(None, use_errno=True)\n"
                   "fds = []\nfor _ in range(5000):\n f = c.inotify_init()\n if f < 0: break\n fds.append(f)\n"
                   "print(len(fds), ctypes.get_errno())\n"
                   "n = sum(c.inotify_add_watch(fds[0], b'd%d' % i, 0x100) > 0 for i in range(1, 2001))\n"
                   "print(n); sys.stdout.flush(); os.system('sleep 5 &')\nX")
        assert r.code == 0, dict(r)
        pid = a.start(["python3", "-c", "import ctypes, time\nc = ctypes.CDLL(None)\n"
                       "while c.inotify_init() >= 0: pass\ntime.sleep(20)"])
        time.sleep(1)
        assert b.exec(["python3", "-c", "import ctypes\nassert ctypes.CDLL(None).inotify_init() >= 0"]).code == 0
        with http.Streaming(b.api.address, "GET", b.file_target("files/watch", "/home/user"),
                            b.api.headers(), timeout_s=10) as s:
            assert s.status == 200
        a.signal(pid, "SIGKILL")


def test_c32_the_right_error_kind(box):
    file_missing = refused(404, "not_found", box.get, "missing")
    box_missing = refused(404, "not_found", box.api.sandbox("sb-" + "z" * 20).get, "missing")
    assert file_missing.message != box_missing.message
    assert "missing" in file_missing.message and "sandbox" in box_missing.message.lower()
    box.put("f", b"")
    refused(400, "invalid", box.list, "f")
    refused(409, "conflict", box.files, "mkdir", path="f")
    refused(400, "invalid", box.get, "/tmp")
    box.sh("install -m 0 /dev/null /tmp/no", user="root")
    refused(403, "denied", box.get, "/tmp/no")
    gone = box.api.create()
    gone.delete()
    refused(409, "conflict", gone.get, "f")


def test_c35_awkward_files_and_listings(box):
    """Shortened: 20,000 entries instead of 100,000."""
    box.sh("mkdir -p odd && cd odd && mkfifo fifo && truncate -s 1T sparse && "
           "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'")
    kinds = {e["name"]: e["type"] for e in box.list("odd")["entries"]}
    assert kinds == {"fifo": "fifo", "sparse": "file", "sock": "socket"}
    assert box.stat("odd/sparse")["size"] == 1 << 40
    ranged = box.api.reply("GET", box.file_target("files", "odd/sparse"),
                           headers={"Range": "bytes=549755813888-549755813897"})
    assert ranged.status == 206 and ranged.body == b"\0" * 10
    for path in ("odd/fifo", "odd/sock", "/dev/zero", "/dev/tty"):
        watch = Stopwatch()
        assert box.api.reply("GET", box.file_target("files", path), timeout_s=10).status in (400, 403)
        assert watch.s < 3
    box.sh("rm -rf odd; mkdir -p lots; cd lots; seq 20000 | xargs touch")
    first = box.list("lots")
    assert len(first["entries"]) == 1000 and first["next_cursor"]
    box.sh("p=deep; for i in $(seq 40); do p=$p/d; done; mkdir -p $p; echo x > $p/f")
    assert box.get("deep/" + "d/" * 40 + "f") == b"x\n"
    assert box.list("deep", depth=64)["entries"]
    assert box.remove("lots", recursive=1).status == 204
    raw = b"/home/user/bad\xff"
    box.put(raw, b"1")
    assert box.files("move", from_b64=base64.b64encode(raw).decode(), to="good").status in (200, 400)

"""H. Escape, bypass, exfiltration. The escape suite (tests/escape) has the rest."""

import base64
import os
import subprocess

import pytest

from gbx import http as h
from gbx import ws
from gbx.api import BASE, ApiError, refused
from gbx.platform import program


def test_c97_no_leaked_descriptor_leads_out(box):
    """CVE-2024-21626: a working directory through /proc/self/fd."""
    host = os.uname().nodename
    for n in range(0, 40):
        try:
            r = box.exec("ls ../../../etc/hostname; cat ../../../etc/hostname; pwd",
                         cwd=f"/proc/self/fd/{n}")
        except ApiError as error:
            assert error.status in (400, 403, 404), str(error)
            continue
        assert host.encode() not in r.out, (n, dict(r))
    box.sh("ln -sfn /proc/self/fd/7 /tmp/d")
    try:
        r = box.exec("cat ../../../etc/hostname; ls -d ../../../root/.ssh", cwd="/tmp/d")
        assert host.encode() not in r.out
    except ApiError as error:
        assert error.status in (400, 403, 404)
    for user in ("user", "root"):
        assert box.exec(["/bin/ls", "/proc/self/fd"], user=user).out.split() == [b"0", b"1", b"2", b"3"]


def test_c98_kernel_helper_files(box):
    names = ("/proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug "
             "/proc/sysrq-trigger /sys/kernel/uevent_helper /sys/fs/cgroup/release_agent "
             "/sys/fs/cgroup/*/release_agent /proc/sys/kernel/panic")
    secret = "/proc/kcore /proc/kallsyms /proc/kmsg /proc/keys /proc/timer_list /sys/firmware/*"
    for user in ("user", "root"):
        r = box.exec(f"for f in {names}; do [ -w $f ] && echo W $f; (: >> $f) 2>/dev/null && echo O $f; done; "
                     f"for f in {secret}; do [ -n \"$(head -c1 $f 2>/dev/null | tr -d '\\0')\" ] && echo R $f; "
                     "done; true", user=user)
        assert r.out == b"", r.out.decode()
        r = box.exec("unshare -Urm sh -c 'mount -t proc p /mnt && echo MOUNTED; "
                     "mount -t cgroup2 c /mnt && echo MOUNTED'", user=user)
        assert b"MOUNTED" not in r.out


def test_c100_nothing_is_typed_into_the_operators_terminal(platform, box):
    """A terminal on the host runs `glovebox exec -t`; inside, a program tries TIOCSTI."""
    box.put("sti.py", b"import fcntl, termios\nfor c in b'touch /tmp/gbx-injected\\n':\n"
                      b"    try: fcntl.ioctl(0, termios.TIOCSTI, bytes([c]))\n"
                      b"    except OSError as e: print('refused', e.errno); break\n")
    script = f"{program('glovebox')} exec -t {box.id} -- python3 sti.py"
    r = subprocess.run(["script", "-qec", script, "/dev/null"], capture_output=True, timeout=30,
                       check=False, stdin=subprocess.DEVNULL,
                       env={**os.environ, "GLOVEBOX_URL": f"unix://{platform.socket}", "TERM": "xterm"})
    assert b"refused" in r.stdout and not os.path.exists("/tmp/gbx-injected"), r


def test_c101_no_platform_credential_inside(box, platform):
    for user in ("user", "root"):
        r = box.exec("for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; tr '\\0' ' ' <$p/cmdline; "
                     "cat $p/task/*/environ; done 2>/dev/null | grep -aiE '[t]oken|[s]ecret|[a]pi.?key'; "
                     "cat /proc/1/mem 2>/dev/null | head -c 1; cat /proc/1/environ 2>/dev/null | head -c 1",
                     user=user)
        assert r.out == b"", r.out
        assert platform.key.encode() not in box.exec("env", user=user).out


SPELLINGS = ["/sandboxes/{id}/proxy/8000/", "/sandboxes/{id}/proxy/8000", "//sandboxes/{id}/proxy/8000/",
             "/SANDBOXES/{id}/proxy/8000/", "/v1/../sandboxes/{id}/proxy/8000/",
             "/%73andboxes/{id}/proxy/8000/", "/sandboxes/{id}/proxy/8000/..;/", "/sandboxes;x/{id}/proxy/8000/",
             "/api/v1/../../sandboxes/{id}/proxy/8000/", "/sandboxes/{id}%2fproxy/8000/",
             "/health/../sandboxes/{id}/proxy/8000/", "/ready/%2e%2e/sandboxes/{id}/proxy/8000/",
             "/api/v1/sandboxes/{id}/exec", "/api/v1/sandboxes/{id}/files?path=/etc/passwd"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_c103_no_spelling_of_a_data_path_skips_the_key(platform, box, spelling):
    box.exec("(python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 &)")
    for headers in ({}, {"Authorization": "Bearer wrong"},
                    {"Host": f"8000-{box.id}.{platform.domain}"}, {"Host": f"8000-{box.id}.{platform.domain}."},
                    {"Glovebox-Sandbox-Id": box.id, "Glovebox-Sandbox-Port": "8000"}):
        reply = h.raw(platform.tcp, f"GET {spelling.format(id=box.id)} HTTP/1.1\r\n".encode()
                      + "".join(f"{k}: {v}\r\n" for k, v in {"Host": "x", **headers}.items()).encode()
                      + b"Connection: close\r\n\r\n")
        assert reply is None or reply.status in (400, 401, 404), (spelling, headers, reply)
    with pytest.raises((ws.Refused, ValueError, IndexError)):
        ws.WebSocket(platform.tcp, spelling.format(id=box.id))


@pytest.mark.parametrize("middle", ["%2F..%2F", "%252f..%252f", "..%5c", "%2f", "/../", "%5c..%5c", ";/../",
                                    "%00", "%c0%af..%c0%af", "%ef%bc%8f..%ef%bc%8f"])
def test_c104_an_encoded_slash_crosses_nothing(api, box, middle):
    with api.create() as victim:
        victim.put("flag", b"flag")
        for target in (f"{BASE}/sandboxes/{box.id}{middle}{victim.id}/files?path=flag",
                       f"/sandboxes/{box.id}{middle}{victim.id}/proxy/8000/",
                       f"{BASE}/sandboxes/{box.id}/files?path={middle}{middle}flag",
                       f"{BASE}/sandboxes/{box.id}/proxy/80{middle}"):
            reply = h.raw(api.address, f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            assert reply is None or reply.status in (400, 404), (target, reply)
            assert reply is None or b"flag" != reply.body


def test_c109_text_from_inside_is_escaped_in_logs_and_lists(api, platform):
    evil = "a\nlevel=error msg=\"forged\"\x1b[31m\u202e<script>"
    refused(400, "invalid", api.create, name=evil)
    with api.create(name="=cmd()<script>\u202e", labels={"k": evil}) as box:
        box.exec("true", tag=evil)
        out = platform.cli("ls").stdout + platform.cli("info", box.id).stdout
        assert b"\x1b" not in out and "\u202e".encode() not in out
        refused(400, "invalid", api.create, labels={"k": "v" * 1_000_000})
        refused(400, "invalid", api.create, labels={"__proto__": {"x": 1}})
    for log in (platform.daemon.log, platform.warden.log):
        data = log.read_bytes()
        assert b"\x1b" not in data and "\u202e".encode() not in data
        assert b"\nlevel=error" not in data


@pytest.mark.parametrize("template", ["169.254.169.254/x:y", "http://127.0.0.1/x", "file:///etc/passwd",
                                      "../../etc", "git::ext", "unix:/run/x", "host\n", "/", "HOST", ""])
def test_c110_a_template_is_a_name_and_no_address(api, template):
    refused(400, "invalid", api.create, template=template)

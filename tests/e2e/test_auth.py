"""Who may ask."""

import os
import stat
import subprocess

import pytest

from gbx import http as h
from gbx import ws
from gbx.api import BASE


def ask(platform, target, headers=None, method="GET"):
    return h.request(platform.tcp, method, target, headers or {})


PROTECTED = [("GET", f"{BASE}/sandboxes"), ("POST", f"{BASE}/sandboxes"),
             ("GET", f"{BASE}/sandboxes/sb-{'z' * 20}"), ("GET", "/metrics"),
             ("GET", f"/sandboxes/sb-{'z' * 20}/proxy/80/"),
             ("GET", f"{BASE}/sandboxes/sb-{'z' * 20}/exec")]


@pytest.mark.parametrize("method,target", PROTECTED)
def test_without_a_key_nothing_is_told(platform, method, target):
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-API-Key": "wrong"},
                    {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer "},
                    {"X-API-Key": platform.key[:-1]}, {"Authorization": platform.key}):
        r = ask(platform, target, headers, method)
        assert r.status == 401 and r.json()["code"] == "unauthorized", (headers, r)
        assert r.headers["X-Request-ID"]


def test_both_header_forms_are_taken(platform):
    for headers in ({"Authorization": f"Bearer {platform.key}"}, {"X-API-Key": platform.key},
                    {"authorization": f"bearer {platform.key}"}):
        assert ask(platform, f"{BASE}/sandboxes", headers).status == 200


def test_health_and_readiness_need_no_key(platform):
    assert ask(platform, "/health").status == 200
    ready = ask(platform, "/ready")
    assert ready.status == 200 and ready.body


def test_every_reply_has_a_request_id(platform, api):
    for target in ("/health", f"{BASE}/sandboxes", "/nothing/here"):
        assert api.reply("GET", target).headers["X-Request-ID"]


def test_the_unix_socket_is_private_and_needs_no_key(platform, api):
    assert stat.S_IMODE(os.stat(platform.socket).st_mode) == 0o600
    assert h.request(h.Address(unix=platform.socket), "GET", f"{BASE}/sandboxes").status == 200


def test_another_user_cannot_use_the_unix_socket(platform):
    script = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\n"
              "try: s.connect(sys.argv[1])\nexcept PermissionError: sys.exit(7)\nsys.exit(0)")
    r = subprocess.run(["setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups",
                        "/usr/bin/python3", "-c", script, platform.socket], timeout=20)
    assert r.returncode == 7


def test_the_key_is_not_kept_in_clear(platform):
    found = []
    for top, _, files in os.walk(platform.dir):
        for name in files:
            path = os.path.join(top, name)
            if os.path.isfile(path) and os.path.getsize(path) < 1 << 24:
                with open(path, "rb") as f:
                    if platform.key.encode() in f.read() and path != str(platform.key_file):
                        found.append(path)
    assert not found


@pytest.fixture(scope="module")
def listening(api):
    with api.create() as box:
        box.start(["python3", "-m", "http.server", "8000", "--bind", "127.0.0.1"])
        yield box


def test_exists_and_does_not_exist_look_the_same_without_a_key(platform, listening):
    for target in ("/api/v1/sandboxes/{}", "/sandboxes/{}/proxy/8000/", "/api/v1/sandboxes/{}/exec"):
        here = ask(platform, target.format(listening.id))
        absent = ask(platform, target.format("sb-" + "z" * 20))
        assert (here.status, here.json()["code"], here.json()["message"]) == \
            (absent.status, absent.json()["code"], absent.json()["message"])
        assert here.status == 401


def test_a_websocket_needs_a_key_too(platform, listening):
    for target in (f"{BASE}/sandboxes/{listening.id}/exec", listening.gateway(8000, "ws")):
        with pytest.raises(ws.Refused) as refusal:
            ws.WebSocket(platform.tcp, target)
        assert refusal.value.status == 401

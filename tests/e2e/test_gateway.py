"""From outside to a port inside: by path, header and host name."""

import http.client
import json
import threading
import time

import pytest

from gbx import http as h
from gbx import sse, ws
from gbx.api import refused
from gbx.wait import until

SERVER = r'''
import base64, hashlib, http.server, json, socketserver, sys, time
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            out = b""
            while (n := int(self.rfile.readline().split(b";")[0], 16)):
                out += self.rfile.read(n); self.rfile.readline()
            self.rfile.readline()
            return out
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))
    def reply(self, data, code=200, **headers):
        self.send_response(code)
        for k, v in headers.items(): self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(data))); self.end_headers()
        if self.command != "HEAD": self.wfile.write(data)
    def handle_any(self):
        path = self.path.split("?")[0]
        if path == "/ws":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101); self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers(); self.close_connection = True
            while True:  # Echoes short masked frames.
                head = self.rfile.read(2)
                if len(head) < 2: return
                n = head[1] & 127; mask = self.rfile.read(4); data = self.rfile.read(n)
                data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
                if head[0] & 15 == 8: return
                self.wfile.write(bytes([head[0], len(data)]) + data); self.wfile.flush()
        if path == "/sse":
            self.send_response(200); self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked"); self.end_headers()
            for i in range(4):
                d = b"data: %d\n\n" % i
                self.wfile.write(b"%x\r\n%s\r\n" % (len(d), d)); self.wfile.flush(); time.sleep(0.3)
            self.wfile.write(b"0\r\n\r\n"); return
        if path == "/close":
            self.send_response(200); self.send_header("Connection", "close"); self.end_headers()
            self.wfile.write(b"until the end"); self.close_connection = True; return
        if path == "/big":
            n = int(self.path.split("?")[1])
            self.send_response(200); self.send_header("Content-Length", str(n)); self.end_headers()
            for _ in range(n >> 16): self.wfile.write(b"B" * 65536)
            return
        if path == "/cut":
            self.send_response(200); self.send_header("Content-Length", "1000"); self.end_headers()
            self.wfile.write(b"x" * 10); self.close_connection = True; return
        if path == "/hash":
            left = int(self.headers["Content-Length"]); s = hashlib.sha256()
            while left:
                d = self.rfile.read(min(left, 65536)); left -= len(d); s.update(d)
            return self.reply(s.hexdigest().encode())
        body = self.body()
        if path == "/teapot": return self.reply(b"short and stout", 418, X_Own="yes")
        self.reply(json.dumps({"method": self.command, "path": self.path, "body": body.decode(),
            "headers": [[k, v] for k, v in self.headers.items()]}).encode())
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_PROPFIND = handle_any
class S(socketserver.ThreadingMixIn, http.server.HTTPServer): daemon_threads = True; request_queue_size = 128
S(("127.0.0.1", 8000), H).serve_forever()
'''


@pytest.fixture(scope="module")
def web(api):
    with api.create() as box:
        box.put("server.py", SERVER.encode())
        box.start(["python3", "server.py"])
        until(lambda: 8000 in [p["port"] for p in box.call("GET", "ports").json()["ports"]], 15)
        yield box


def seen(reply):
    assert reply.status == 200, reply
    value = reply.json()
    value["headers"] = {k.lower(): v for k, v in value["headers"]}
    return value


def test_the_path_form_passes_the_rest_of_the_target_unchanged(web, api):
    r = seen(api.reply("GET", web.gateway(8000, "a/b?x=1&y=%20z")))
    assert (r["method"], r["path"]) == ("GET", "/a/b?x=1&y=%20z")
    assert seen(api.reply("GET", web.gateway(8000)))["path"] == "/"


def test_the_header_form(web, api):
    r = seen(api.reply("GET", "/any/path?q", headers={"Glovebox-Sandbox-Id": web.id,
                                                      "Glovebox-Sandbox-Port": "8000"}))
    assert r["path"] == "/any/path?q"


def test_the_host_form(web, api, platform):
    r = seen(api.reply("GET", "/by/host", headers={"Host": f"8000-{web.id}.{platform.domain}"}))
    assert r["path"] == "/by/host"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"])
def test_any_method_with_a_body(web, api, method):
    r = seen(api.reply(method, web.gateway(8000, "m"), b"payload"))
    assert r["method"] == method and r["body"] == "payload"


def test_head_has_no_body(web, api):
    r = api.reply("HEAD", web.gateway(8000, "x"))
    assert r.status == 200 and r.body == b"" and int(r.headers["Content-Length"]) > 0


def test_chunked_bodies_go_through(web, api):
    r = seen(api.reply("POST", web.gateway(8000, "c"), iter([b"one ", b"two ", b"three"])))
    assert r["body"] == "one two three"


def test_the_api_key_never_reaches_the_sandbox(web, platform):
    keyed = platform.http_api
    for headers in ({}, {"X-API-Key": keyed.key, "Authorization": "Basic bWluZQ=="}):
        r = h.request(keyed.address, "GET", web.gateway(8000, "k"),
                      {**keyed.headers(), **headers} if not headers else headers)
        text = r.text
        assert r.status == 200 and keyed.key not in text, text


def test_status_and_headers_come_back(web, api):
    r = api.reply("GET", web.gateway(8000, "teapot"))
    assert (r.status, r.body, r.headers["X-Own"]) == (418, b"short and stout", "yes")


def test_a_body_that_ends_with_the_connection(web, api):
    assert api.reply("GET", web.gateway(8000, "close")).body == b"until the end"


def test_events_pass_as_they_come(web, api):
    times = []
    with h.Streaming(api.address, "GET", web.gateway(8000, "sse"), api.headers()) as s:
        for _ in sse.events(s.chunks()):
            times.append(time.monotonic())
    assert len(times) == 4 and times[-1] - times[0] > 0.6


def test_websockets_pass(web, api):
    with ws.WebSocket(api.address, web.gateway(8000, "ws"), api.headers()) as s:
        for text in (b"hello", b"", b"\xff\x00" * 50):
            s.send(ws.BINARY, text)
            assert s.message() == (ws.BINARY, text)


def test_large_bodies_stream_both_ways_in_bounded_memory(web, api, platform):
    import hashlib
    block = b"0123456789abcdef" * 65536
    before = platform.resident_bytes()
    sha = hashlib.sha256()

    def blocks():
        for _ in range(100):
            sha.update(block)
            yield block

    connection = h.Connection(api.address, 60)
    connection.putrequest("POST", web.gateway(8000, "hash"))
    for k, v in {**api.headers(), "Content-Length": str(100 << 20)}.items():
        connection.putheader(k, v)
    connection.endheaders()
    for data in blocks():
        connection.send(data)
    assert connection.getresponse().read().decode() == sha.hexdigest()
    connection.close()
    total = 0
    with h.Streaming(api.address, "GET", web.gateway(8000, f"big?{200 << 20}"), api.headers(),
                     timeout_s=60) as s:
        for chunk in s.chunks(1 << 20):
            total += len(chunk)
    assert total == 200 << 20
    assert platform.resident_bytes() - before < 16 << 20


def test_a_reader_that_stops_does_not_grow_the_daemon(web, api, platform):
    before = platform.resident_bytes()
    with h.Streaming(api.address, "GET", web.gateway(8000, f"big?{500 << 20}"), api.headers(),
                     receive_buffer=4096):
        time.sleep(1.5)
        assert platform.resident_bytes() - before < 16 << 20


def test_a_reply_that_is_cut_is_not_called_whole(web, api):
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        api.reply("GET", web.gateway(8000, "cut"))


def test_errors_are_the_platforms_own(web, api):
    refused(502, "port_closed", api.call, "GET", web.gateway(9, "x"))
    refused(404, "not_found", api.call, "GET", f"/sandboxes/sb-{'z' * 20}/proxy/8000/")
    for port in ("0", "65536", "x", "-1", "080", ""):
        assert api.reply("GET", f"/sandboxes/{web.id}/proxy/{port}/").status in (400, 404)


def test_many_requests_on_one_connection(web, api):
    connection = h.Connection(api.address)
    for n in range(200):
        r = api.reply("POST", web.gateway(8000, f"n{n}"), b"b%d" % n, connection=connection)
        value = json.loads(r.body)
        assert value["path"] == f"/n{n}" and value["body"] == f"b{n}"
    connection.close()


def test_many_connections_at_once(web, api):
    wrong = []

    def one(n):
        for i in range(10):
            r = api.reply("GET", web.gateway(8000, f"{n}-{i}"))
            if r.status != 200 or r.json()["path"] != f"/{n}-{i}":
                wrong.append(r)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(30)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not wrong


SMUGGLES = {
    "both lengths": b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "signed length": b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n\r\nabcd",
    "odd coding": b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "space in name": b"GET %s HTTP/1.1\r\nHost: x\r\nX-A : b\r\n\r\n",
    "folded": b"GET %s HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n",
    "no host": b"GET %s HTTP/1.1\r\n\r\n",
    "two hosts": b"GET %s HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "bare cr": b"GET %s HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n",
    "nul": b"GET %s HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLES)
def test_ambiguous_requests_are_refused_not_passed_on(web, api, name):
    reply = h.raw(api.address, SMUGGLES[name] % web.gateway(8000, "smuggle").encode())
    assert reply is None or 400 <= reply.status < 600 and reply.status != 200, (name, reply)

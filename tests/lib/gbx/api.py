"""The native API (docs/api/contract.md) as tests use it."""

import base64
import json
import urllib.parse

from gbx import http, sse, ws

BASE = "/api/v1"


class ApiError(Exception):
    def __init__(self, method, target, reply):
        self.status, self.headers = reply.status, reply.headers
        try:
            self.body = reply.json()
        except ValueError:
            self.body = {}
        if not isinstance(self.body, dict):
            self.body = {}
        self.code = self.body.get("code")
        self.message = self.body.get("message", "")
        super().__init__(f"{method} {target}: {reply.status} {reply.body[:500]!r}")


def query(**params):
    return urllib.parse.urlencode({k: v for k, v in params.items() if v is not None},
                                  quote_via=urllib.parse.quote)


class Api:
    def __init__(self, address, key=None, observer=None):
        self.address, self.key = address, key
        self.observer = observer  # Called as (method, target, reply): see openapi.py.

    def headers(self, extra=None):
        out = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        out.update(extra or {})
        return out

    def reply(self, method, target, body=None, headers=None, timeout_s=60.0, connection=None):
        """The reply, whatever its status. A dict or list as `body` is sent as JSON."""
        extra = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            extra.setdefault("Content-Type", "application/json")
        reply = http.request(self.address, method, target, self.headers(extra), body, timeout_s,
                             connection)
        if self.observer:
            self.observer(method, target, reply)
        return reply

    def call(self, method, target, body=None, headers=None, timeout_s=60.0, connection=None):
        """The reply when it is 2xx, else raises ApiError."""
        reply = self.reply(method, target, body, headers, timeout_s, connection)
        if not 200 <= reply.status < 300:
            raise ApiError(method, target, reply)
        return reply

    def create(self, idempotency_key=None, create_timeout_s=60.0, **fields):
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else None
        reply = self.call("POST", f"{BASE}/sandboxes", fields, headers, create_timeout_s)
        return Sandbox(self, reply.json())

    def list(self, labels=(), **params):
        parts = [query(**params)] + [query(label=label) for label in labels]
        target = f"{BASE}/sandboxes?" + "&".join(p for p in parts if p)
        return self.call("GET", target.rstrip("?")).json()

    def list_all(self, **params):
        out, cursor = [], None
        while True:
            page = self.list(cursor=cursor, **params)
            out += page["sandboxes"]
            cursor = page["next_cursor"]
            if not cursor:
                return out

    def sandbox(self, sandbox_id):
        return Sandbox(self, {"id": sandbox_id})


class Result(dict):
    """An ExecResult; bytes whether the server chose text or base64."""

    def _bytes(self, name):
        if name + "_b64" in self:
            return base64.b64decode(self[name + "_b64"])
        return self.get(name, "").encode()

    @property
    def out(self):
        return self._bytes("stdout")

    @property
    def err(self):
        return self._bytes("stderr")

    @property
    def code(self):
        return self["exit_code"]


def event_bytes(event):
    data = event.json()
    return base64.b64decode(data["b64"]) if "b64" in data else data["text"].encode()


class Sandbox:
    def __init__(self, api, fields):
        self.api, self.fields, self.id = api, fields, fields["id"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()

    def path(self, rest=""):
        return f"{BASE}/sandboxes/{self.id}" + (f"/{rest}" if rest else "")

    def call(self, method, rest, body=None, headers=None, timeout_s=60.0, connection=None):
        return self.api.call(method, self.path(rest), body, headers, timeout_s, connection)

    def reply(self, method, rest, body=None, headers=None, timeout_s=60.0, connection=None):
        return self.api.reply(method, self.path(rest), body, headers, timeout_s, connection)

    # Life.

    def info(self):
        return self.call("GET", "").json()

    @property
    def state(self):
        return self.info()["state"]

    def delete(self):
        reply = self.reply("DELETE", "")
        if reply.status not in (204, 404):
            raise ApiError("DELETE", self.path(), reply)

    def pause(self):
        return self.call("POST", "pause").json()

    def resume(self):
        return self.call("POST", "resume").json()

    def extend(self, **fields):
        return self.call("POST", "extend", fields).json()

    def metrics(self):
        return self.call("GET", "metrics").json()

    # Commands.

    @staticmethod
    def exec_body(command, fields):
        key = "cmd" if isinstance(command, str) else "args"
        return {key: command, **fields}

    def exec(self, command, timeout_s=60.0, connection=None, **fields):
        """Runs to its end. A str is a shell line, a list an argument vector.
        `limit_s` in fields is the command's own timeout_s."""
        if "limit_s" in fields:
            fields["timeout_s"] = fields.pop("limit_s")
        return Result(self.call("POST", "exec", self.exec_body(command, fields),
                                {"Accept": "application/json"}, timeout_s, connection).json())

    def sh(self, line, **fields):
        """Its output as text; the command must succeed."""
        result = self.exec(line, **fields)
        assert result.code == 0, f"{line!r}: {dict(result)}"
        return result.out.decode()

    def stream(self, command, timeout_s=60.0, receive_buffer=None, **fields):
        """An open Streaming of the exec's events."""
        if "limit_s" in fields:
            fields["timeout_s"] = fields.pop("limit_s")
        return http.Streaming(
            self.api.address, "POST", self.path("exec"),
            self.api.headers({"Accept": "text/event-stream", "Content-Type": "application/json"}),
            json.dumps(self.exec_body(command, fields)).encode(), timeout_s, receive_buffer)

    def events(self, command, timeout_s=60.0, comments=None, **fields):
        with self.stream(command, timeout_s, **fields) as stream:
            if stream.status != 200:
                raise ApiError("POST", self.path("exec"),
                               http.Reply(stream.status, stream.headers, stream.response.read()))
            yield from sse.events(stream.chunks(), comments)

    def start(self, command, **fields):
        """Starts in the background and returns its pid."""
        return self.exec(command, background=True, **fields)["pid"]

    def output(self, pid, timeout_s=60.0, **params):
        target = self.path(f"processes/{pid}/output") + ("?" + query(**params) if params else "")
        with http.Streaming(self.api.address, "GET", target,
                            self.api.headers({"Accept": "text/event-stream"}),
                            timeout_s=timeout_s) as stream:
            if stream.status != 200:
                raise ApiError("GET", target,
                               http.Reply(stream.status, stream.headers, stream.response.read()))
            yield from sse.events(stream.chunks())

    def processes(self):
        return self.call("GET", "processes").json()["processes"]

    def process(self, pid):
        return self.call("GET", f"processes/{pid}").json()

    def stdin(self, pid, data=b"", close=False):
        return self.reply("POST", f"processes/{pid}/stdin" + ("?close=1" if close else ""), data)

    def signal(self, pid, signal, **fields):
        return self.reply("POST", f"processes/{pid}/signal", {"signal": signal, **fields})

    def websocket(self, request=None, timeout_s=30.0):
        socket = ws.WebSocket(self.api.address, self.path("exec"), self.api.headers(), timeout_s)
        if request is not None:
            socket.send_json(request)
        return socket

    # Files.

    def file_target(self, rest, path, **params):
        named = {"path_b64": base64.b64encode(path).decode()} if isinstance(path, bytes) else \
            {"path": path}
        return self.path(rest) + "?" + query(**named, **params)

    def put(self, path, data, timeout_s=60.0, headers=None, **params):
        return self.api.call("PUT", self.file_target("files", path, **params), data, headers,
                             timeout_s).json()

    def get(self, path, headers=None, **params):
        return self.api.call("GET", self.file_target("files", path, **params), None, headers).body

    def stat(self, path, **params):
        return self.api.call("GET", self.file_target("files/stat", path, **params)).json()

    def list(self, path, **params):
        return self.api.call("GET", self.file_target("files/list", path, **params)).json()

    def remove(self, path, **params):
        return self.api.call("DELETE", self.file_target("files", path, **params))

    def files(self, verb, **fields):
        return self.call("POST", f"files/{verb}", fields)

    def gateway(self, port, rest=""):
        return f"/sandboxes/{self.id}/proxy/{port}/{rest}"


def refused(status, code, call, *args, **kwargs):
    """Asserts that the call fails with this status and code; returns the ApiError."""
    try:
        value = call(*args, **kwargs)
    except ApiError as error:
        assert (error.status, error.code) == (status, code), str(error)
        assert error.message, "an error says what is wrong"
        return error
    if isinstance(value, http.Reply):
        assert value.status == status, value
        body = value.json()
        assert body["code"] == code and body["message"], body
        return body
    raise AssertionError(f"not refused: {value!r}")

"""The server and docs/api/openapi.yaml say the same. Every other file of e2e is checked too, see
conftest.py; this one asks for what they do not."""

import pytest

from gbx import openapi
from gbx.api import BASE


@pytest.fixture(scope="module")
def document():
    return openapi.Document()


def test_the_document_itself_is_sound(document):
    assert document.doc["openapi"].startswith("3.1")
    seen = set()
    for method, template, _, operation in document.operations:
        assert operation.get("operationId"), (method, template)
        assert operation["operationId"] not in seen, operation["operationId"]
        seen.add(operation["operationId"])
        assert operation["responses"], (method, template)

    def refs(node):
        if isinstance(node, dict):
            if "$ref" in node:
                document.resolve(node)
            for value in node.values():
                refs(value)
        elif isinstance(node, list):
            for value in node:
                refs(value)

    refs(document.doc)


def test_every_call_of_the_contract_is_described(document):
    described = {(m, t) for m, t, _, _ in document.operations}
    one = f"{BASE}/sandboxes/{{id}}"
    wanted = [("GET", "/health"), ("GET", "/ready"), ("GET", "/metrics"),
              ("POST", f"{BASE}/sandboxes"), ("GET", f"{BASE}/sandboxes"), ("GET", one),
              ("DELETE", one)]
    wanted += [("POST", f"{one}/{verb}") for verb in ("extend", "pause", "resume", "exec")]
    wanted += [("POST", f"{one}/files/{verb}") for verb in ("mkdir", "move", "chmod")]
    wanted += [("GET", f"{one}/{rest}") for rest in
               ("metrics", "exec", "processes", "processes/{pid}", "processes/{pid}/output", "files",
                "files/stat", "files/list", "files/watch", "ports")]
    wanted += [("POST", f"{one}/processes/{{pid}}/{v}") for v in ("stdin", "signal", "resize")]
    wanted += [("PUT", f"{one}/files"), ("DELETE", f"{one}/files")]
    assert not [w for w in wanted if w not in described]


def test_live_replies_agree(api, document):
    faults = []

    def ask(method, target, body=None, headers=None):
        reply = api.reply(method, target, body, headers)
        faults.extend(document.faults(method, target, reply))
        return reply

    for target in ("/health", "/ready", "/metrics"):
        ask("GET", target)
    box = api.create(labels={"a": "b"})
    ask("POST", f"{BASE}/sandboxes", {"timeout_s": -1})
    ask("GET", f"{BASE}/sandboxes?limit=1")
    for rest in ("", "metrics", "processes", "files/list?path=/", "files/stat?path=/etc/passwd",
                 "files?path=/etc/passwd", "files?path=missing", "ports", "processes/999999", "health"):
        ask("GET", box.path(rest))
    ask("POST", box.path("exec"), {"cmd": "echo hi"}, {"Accept": "application/json"})
    ask("POST", box.path("exec"), {"cmd": "true"}, {"Accept": "text/event-stream"})
    ask("POST", box.path("exec"), {"cmd": 5})
    ask("POST", box.path("exec"), {"cmd": "sleep 1", "background": True})
    ask("PUT", box.path("files?path=x"), b"data")
    ask("HEAD", box.path("files?path=x"))
    ask("GET", box.path("files?path=x"), headers={"Range": "bytes=0-1"})
    ask("GET", box.path("files?path=x"), headers={"Range": "bytes=99-"})
    ask("POST", box.path("files/mkdir"), {"path": "d"})
    ask("POST", box.path("files/move"), {"from": "x", "to": "d/x"})
    ask("POST", box.path("files/chmod"), {"path": "d/x", "mode": "0600"})
    ask("DELETE", box.path("files?path=d&recursive=1"))
    ask("POST", box.path("pause"))
    ask("POST", box.path("exec"), {"cmd": "true"})
    ask("POST", box.path("resume"))
    ask("POST", box.path("extend"), {"timeout_s": 50})
    ask("DELETE", box.path())
    ask("GET", box.path())
    ask("POST", box.path("pause"))
    ask("GET", f"{BASE}/sandboxes/sb-{'z' * 20}")
    assert not faults, "\n".join(faults)

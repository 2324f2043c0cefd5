"""Compares what the server really answers with docs/api/openapi.yaml."""

import json
import pathlib
import re

import yaml
from jsonschema import Draft202012Validator

FILE = pathlib.Path(__file__).resolve().parents[3] / "docs/api/openapi.yaml"


OURS = ("/api/", "/health", "/ready", "/metrics")


class Document:
    def __init__(self, path=FILE):
        self.doc = yaml.safe_load(path.read_text("utf-8"))
        self.operations = []  # (method, template, compiled, operation)
        for template, item in self.doc["paths"].items():
            # A parameter at the very end of a proxy path takes the rest, slashes and all.
            pattern = re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(template))
            for method, operation in item.items():
                if method in ("get", "post", "put", "delete", "head", "patch"):
                    self.operations.append((method.upper(), template, re.compile(pattern + r"\Z"),
                                            operation))

    def resolve(self, value):
        while isinstance(value, dict) and "$ref" in value:
            node = self.doc
            for part in value["$ref"].removeprefix("#/").split("/"):
                node = node[part.replace("~1", "/").replace("~0", "~")]
            value = node
        return value

    def find(self, method, target):
        path = target.split("?")[0]
        wanted = "GET" if method == "HEAD" else method  # HEAD is where GET is (RFC 9110, 9.3.2).
        best = [(template, operation) for m, template, compiled, operation in self.operations
                if m == wanted and compiled.match(path)]
        # The literal template wins over one with a parameter.
        return min(best, key=lambda x: x[0].count("{"), default=None)

    def faults(self, method, target, reply):
        """What is wrong with this reply by the document; an empty list when it agrees."""
        found = self.find(method, target)
        if not found:
            return [f"{method} {target.split('?')[0]} is not described"] if reply.status < 400 else []
        template, operation = found
        name = f"{method} {template} -> {reply.status}"
        responses = {str(k): v for k, v in operation["responses"].items()}
        response = responses.get(str(reply.status), responses.get(f"{reply.status // 100}XX",
                                                                  responses.get("default")))
        if response is None:
            return [f"{name}: this status is not described"]
        response = self.resolve(response)
        content = response.get("content")
        kind = (reply.headers.get("Content-Type") or "").split(";")[0].strip()
        if not content:
            return [f"{name}: a body where none is described"] if reply.body else []
        if method == "HEAD":
            return []
        if kind not in content:
            wild = [k for k in content if k in ("*/*", kind.split("/")[0] + "/*")]
            if not wild:
                return [f"{name}: Content-Type {kind!r}, described are {sorted(content)}"]
            kind = wild[0]
        schema = content[kind].get("schema")
        if kind != "application/json" or schema is None:
            return []
        # References inside the schema are resolved against the whole document.
        validator = Draft202012Validator({**self.doc, "$schema": Draft202012Validator.META_SCHEMA["$id"],
                                          "allOf": [schema]})
        return [f"{name}: {e.json_path}: {e.message[:300]}"
                for e in validator.iter_errors(json.loads(reply.body))]


class Observer:
    """Called with every reply that the tests get; collects the disagreements."""

    document = None

    def __init__(self):
        self.faults, self.seen = {}, set()
        if FILE.exists() and Observer.document is None:
            Observer.document = Document()

    def __call__(self, method, target, reply):
        if Observer.document is None or not target.startswith(OURS):
            return  # What a sandbox's own server answers is not ours.
        found = Observer.document.find(method, target)
        if found:
            self.seen.add((method, found[0], reply.status))
        for fault in Observer.document.faults(method, target, reply):
            self.faults[fault] = f"{method} {target}"

"""Server-sent events (WHATWG HTML 9.2), read from an iterator of byte chunks."""

import json


class Event:
    def __init__(self, name, data):
        self.name, self.data = name, data

    def json(self):
        return json.loads(self.data)

    def __repr__(self):
        return f"{self.name}: {self.data[:200]}"


def lines(chunks):
    """Lines ended by LF, CRLF or CR; what is after the last end is not a line."""
    buffer = b""
    for chunk in chunks:
        buffer += chunk
        *whole, buffer = buffer.replace(b"\r\n", b"\n").split(b"\n")
        yield from whole


def events(chunks, comments=None):
    """Yields Events. Comment lines are appended to `comments`, a list, when one is given."""
    name, data = "", []
    for line in lines(chunks):
        if not line:
            if data:
                yield Event(name or "message", b"\n".join(data).decode("utf-8"))
            name, data = "", []
        elif line.startswith(b":"):
            if comments is not None:
                comments.append(line)
        else:
            field, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if field == b"event":
                name = value.decode("utf-8")
            elif field == b"data":
                data.append(value)

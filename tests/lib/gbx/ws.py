"""A WebSocket client (RFC 6455) in the test's hands: it can also send what a good one would not."""

import base64
import http.client
import json
import os
import struct
import time

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    def __init__(self, status, headers, body):
        super().__init__(f"{status} {body[:200]!r}")
        self.status, self.headers, self.body = status, headers, body


class WebSocket:
    def __init__(self, address, target, headers=None, timeout_s=30.0):
        self.sock = address.connect(timeout_s)
        key = base64.b64encode(os.urandom(16)).decode()
        sent = {"Host": address.host_header, "Connection": "Upgrade", "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key, **(headers or {})}
        head = f"GET {target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in sent.items())
        self.sock.sendall(head.encode() + b"\r\n")
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            data = self.sock.recv(4096)
            if not data:
                break
            self.buffer += data
        head, _, rest = self.buffer.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1]) if head else 0
        if status != 101:
            parsed = http.client.parse_headers(_Lines(head.split(b"\r\n")[1:]))
            length = int(parsed.get("Content-Length", "0"))
            while len(rest) < length:
                data = self.sock.recv(4096)
                if not data:
                    break
                rest += data
            self.sock.close()
            raise Refused(status, parsed, rest)
        self.buffer = rest

    def send(self, opcode, payload, fin=True, masked=True):
        head = bytes([(0x80 if fin else 0) | opcode])
        mask_bit = 0x80 if masked else 0
        if len(payload) < 126:
            head += bytes([mask_bit | len(payload)])
        elif len(payload) < 65536:
            head += bytes([mask_bit | 126]) + struct.pack(">H", len(payload))
        else:
            head += bytes([mask_bit | 127]) + struct.pack(">Q", len(payload))
        if masked:
            key = os.urandom(4)
            whole = key * (len(payload) // 4 + 1)
            payload = (int.from_bytes(payload, "big") ^
                       int.from_bytes(whole[:len(payload)], "big")).to_bytes(len(payload), "big")
            head += key
        self.sock.sendall(head + payload)

    def send_json(self, value):
        self.send(TEXT, json.dumps(value).encode())

    def _take(self, count):
        while len(self.buffer) < count:
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError("closed in the middle of a frame")
            self.buffer += data
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def frame(self):
        """(opcode, fin, payload) of the next frame as it came; None at end of file."""
        if not self.buffer:
            try:
                self.buffer = self.sock.recv(65536)
            except ConnectionResetError:
                self.buffer = b""
            if not self.buffer:
                return None
        first, second = self._take(2)
        assert not second & 0x80, "a server must not mask (RFC 6455 5.1)"
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", self._take(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self._take(8))
        return first & 0x0F, bool(first & 0x80), self._take(length)

    def message(self, within_s=30.0):
        """(opcode, payload) of the next message; pings are answered. None when it is over."""
        opcode, payload = None, b""
        end = time.monotonic() + within_s  # Pings alone are no message.
        while True:
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            frame = self.frame()
            if frame is None:
                return None
            code, fin, data = frame
            if code == PING:
                self.send(PONG, data)
            elif code == CLOSE:
                self.close_code = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else None
                return None
            elif code != PONG:
                opcode = code or opcode
                payload += data
                if fin:
                    return opcode, payload

    def close(self):
        try:
            self.send(CLOSE, struct.pack(">H", 1000))
        except OSError:
            pass
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Lines:
    """What http.client.parse_headers reads from."""

    def __init__(self, lines):
        self.lines = [line + b"\r\n" for line in lines] + [b"\r\n"]

    def readline(self, _limit=-1):
        return self.lines.pop(0) if self.lines else b""

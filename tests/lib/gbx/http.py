"""HTTP/1.1 over TCP or a Unix socket. Thin on purpose: what is sent is what the test says."""

import http.client
import json
import socket


class Address:
    """Where a server listens: a Unix path, or a TCP host and port."""

    def __init__(self, unix=None, host=None, port=None):
        self.unix, self.host, self.port = unix, host, port

    def connect(self, timeout_s=30.0, receive_buffer=None):
        family = socket.AF_UNIX if self.unix else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        sock.settimeout(timeout_s)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            sock.connect(self.unix if self.unix else (self.host, self.port))
        except OSError:
            sock.close()
            raise
        if not self.unix:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    @property
    def host_header(self):
        return "localhost" if self.unix else f"{self.host}:{self.port}"

    def __repr__(self):
        return self.unix or f"{self.host}:{self.port}"


class Connection(http.client.HTTPConnection):
    def __init__(self, address, timeout_s=30.0, receive_buffer=None):
        super().__init__(address.host_header.split(":")[0], timeout=timeout_s)
        self.address, self.receive_buffer = address, receive_buffer

    def connect(self):
        self.sock = self.address.connect(self.timeout, self.receive_buffer)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode("utf-8")

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


def request(address, method, target, headers=None, body=None, timeout_s=30.0, connection=None):
    """One whole exchange. `body` is bytes, an iterable of bytes (sent chunked), or None."""
    own = connection is None
    if own:
        connection = Connection(address, timeout_s)
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        sent = {k.lower() for k in (headers or {})}
        if "host" not in sent:
            connection.putheader("Host", address.host_header)
        for name, value in (headers or {}).items():
            for one in value if isinstance(value, list) else [value]:
                connection.putheader(name, one)
        chunked = body is not None and not isinstance(body, (bytes, bytearray))
        if body is not None and "content-length" not in sent:
            if chunked:
                connection.putheader("Transfer-Encoding", "chunked")
            else:
                connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        try:
            if chunked:
                for chunk in body:
                    if chunk:
                        connection.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                connection.send(b"0\r\n\r\n")
            elif body:
                connection.send(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The server may refuse a body early; its answer is what counts.
        response = connection.getresponse()
        return Reply(response.status, response.headers, response.read())
    finally:
        if own:
            connection.close()


def raw(address, bytes_sent, timeout_s=10.0, method="GET"):
    """Sends exactly these bytes and reads one reply; None when the server just closed."""
    sock = address.connect(timeout_s)
    try:
        try:
            sock.sendall(bytes_sent)
        except (BrokenPipeError, ConnectionResetError):
            pass
        response = http.client.HTTPResponse(sock, method=method)
        try:
            response.begin()
        except (http.client.BadStatusLine, ConnectionResetError):
            return None
        return Reply(response.status, response.headers, response.read())
    finally:
        sock.close()


class Streaming:
    """A reply whose body is read as it comes. A context manager that hangs up at its end."""

    def __init__(self, address, method, target, headers=None, body=None, timeout_s=30.0,
                 receive_buffer=None):
        self.connection = Connection(address, timeout_s, receive_buffer)
        try:
            self.connection.request(method, target, body=body,
                                    headers={"Host": address.host_header, **(headers or {})})
            self.response = self.connection.getresponse()
        except BaseException:
            self.connection.close()
            raise
        self.status, self.headers = self.response.status, self.response.headers

    def chunks(self, size=65536):
        while True:
            data = self.response.read1(size)
            if not data:
                return
            yield data

    def close(self):
        self.response.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

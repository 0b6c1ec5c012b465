"""A real server on this machine that misbehaves as servers and networks do."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import socket
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclasses.dataclass(frozen=True)
class Answer:
    """How the server meets one request."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    cut: int | None = None  # body bytes after which the connection ends
    reset: bool = False  # the connection ends by a reset
    stalls: bool = False  # it does not end: nothing more comes
    dribbles: bool = False  # a byte at a time comes, and there is always another one
    ranges: bool = True
    length: bool = True  # Content-Length is sent
    chunked: bool = False
    etag: str | None = '"one"'
    modified: str | None = "Mon, 05 Jul 2021 10:00:00 GMT"
    content_range: str | None = None  # a wrong one
    checks: bool = True  # If-Range is looked at


class Host(ThreadingHTTPServer):
    """Meets requests with `answers`, in turn; the last one stays."""

    daemon_threads = True

    def __init__(self, body: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = [Answer()]
        self.body = body
        self.requests: list[dict[str, str]] = []
        self.sent = 0  # bytes of bodies
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/set.hdf5"

    @property
    def ranges(self) -> list[str | None]:
        return [request.get("Range") for request in self.requests]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may disconnect."""


class _Handler(BaseHTTPRequestHandler):
    server: Host
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        host = self.server
        host.requests.append(dict(self.headers))
        answer = host.answers.pop(0) if len(host.answers) > 1 else host.answers[0]
        self.close_connection = True
        if answer.status != 200:
            self.send_response(answer.status)
            self._tell(*answer.headers, ("Content-Length", "0"))
            return
        status, start = self._place(answer)
        body = b"" if status == 416 else host.body[start:]
        self.send_response(status)
        self._tell(*answer.headers, *self._facts(answer, status, start, len(body)))
        self._send(answer, body)

    def _place(self, answer: Answer) -> tuple[int, int]:
        requested = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        same = self.headers.get("If-Range") in (answer.etag, answer.modified) or not answer.checks
        if not requested or not answer.ranges or not same:
            return 200, 0
        start = int(requested[1])
        return (206, start) if start < len(self.server.body) else (416, start)

    def _facts(self, answer: Answer, status: int, start: int, length: int) -> list[tuple[str, str]]:
        total = len(self.server.body)
        place = f"bytes {start}-{total - 1}/{total}" if status == 206 else f"bytes */{total}"
        facts = {
            "ETag": answer.etag,
            "Last-Modified": answer.modified,
            "Content-Length": str(length) if answer.length and not answer.chunked else None,
            "Transfer-Encoding": "chunked" if answer.chunked else None,
            "Content-Range": answer.content_range or place if status in (206, 416) else None,
        }
        return [(key, value) for key, value in facts.items() if value]

    def _tell(self, *headers: tuple[str, str]) -> None:
        for header in headers:
            self.send_header(*header)
        self.end_headers()

    def _send(self, answer: Answer, body: bytes) -> None:
        while answer.dribbles and not self.server.closing.wait(0.001):
            self.wfile.write(b".")
        part = body[: answer.cut]
        self.server.sent += len(part)
        self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part) if answer.chunked else part)
        if answer.chunked and answer.cut is None:
            self.wfile.write(b"0\r\n\r\n")
        if answer.stalls:
            self.server.closing.wait(10)
        if answer.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def serving(body: bytes) -> Iterator[Host]:
    """A server of this file, until the end of the block."""
    with Host(body) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()

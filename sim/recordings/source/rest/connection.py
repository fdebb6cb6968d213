"""Connections with an overall time limit, however slowly the server sends; redirects within one server only.

A socket's time limit holds for each read.  A server that sends a byte a second never reaches it, in a body or in a header.
"""

from __future__ import annotations

import io
import socket
import ssl
from collections.abc import Callable
from functools import cached_property, partial
from http.client import HTTPConnection, HTTPMessage, HTTPResponse, HTTPSConnection
from typing import IO, Any
from urllib.parse import urljoin, urlsplit
from urllib.request import AbstractHTTPHandler, HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request

from sim.address import Address
from sim.foreign import one_line

LONGEST = 160  # characters of an address in a message
Left = Callable[[], float]
"""Seconds until the next read must end; TimeoutError: none are left."""


class RedirectError(Exception):
    """A redirect to another server, in one line."""


class WithinServer(HTTPRedirectHandler):
    """A redirect handler that follows no redirect to another origin.

    The other server would get the headers for this one, or they would travel unencrypted.
    """

    def http_error_302(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage) -> Any:
        location = headers.get("location") or ""
        try:
            target = urljoin(req.full_url, location)
            same = origin(target) == origin(req.full_url)
        except ValueError:
            same, target = False, location
        if not location or not same:
            fp.close()
            place = one_line(str(Address(target)), LONGEST)
            known = f"sends us to {place}: if that is Flink, give its address"
            raise RedirectError(known if location else "redirects, and does not say where")
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class HTTPInTime(HTTPHandler):
    """An HTTP handler whose connections have a time limit."""

    def __init__(self, left: Left) -> None:
        super().__init__()
        self.left = left

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_Connection, self.left), req)


class HTTPSInTime(HTTPSHandler):
    """An HTTPS handler whose connections have a time limit."""

    def __init__(self, left: Left) -> None:
        AbstractHTTPHandler.__init__(self)  # that of HTTPSHandler reads all certificates of the machine: 20 ms, for http as well
        self.left = left

    @cached_property
    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_SecureConnection, self.left), req, context=self.trusted)


class _Connection(HTTPConnection):
    """An HTTP connection whose reads have a limit."""

    def __init__(self, left: Left, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.left = left

    def connect(self) -> None:
        super().connect()
        self.sock = _DeadlineSocket(self.sock, self.left)


class _SecureConnection(_Connection, HTTPSConnection):
    """A TLS connection whose reads have a limit."""


class _DeadlineSocket:
    """A socket whose reads have a limit."""

    def __init__(self, sock: socket.socket, left: Left) -> None:
        self.sock = sock
        self.left = left

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_DeadlineReader(self.sock, self.left))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)


class _DeadlineReader(io.RawIOBase):
    """A reader of a socket with a limit."""

    def __init__(self, sock: socket.socket, left: Left) -> None:
        self.sock = sock
        self.left = left
        self.raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self.sock.settimeout(self.left())
        return self.raw.readinto(buffer)

    def close(self) -> None:
        self.raw.close()
        super().close()


def origin(url: str) -> tuple[str, str, int]:
    """(scheme, host, port).  ValueError: an address without them."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)

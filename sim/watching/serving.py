"""A server of what a watch publishes: `/metrics` for Prometheus, and the page at `/`.

Tornado serves all readers from one thread, so one that is slow or silent keeps nobody waiting.  A connection is one request, and is closed
after CONNECTION_LIMIT_S, however far it has come.  On a loopback address only names of this machine are served: a page of another site
could otherwise let its own name resolve to this address, and read the job in the user's browser (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from sim.watching.page import Published

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
CONNECTION_LIMIT_S = 5.0
"""From the connection to the last byte of the answer."""
_MAX_HEADER_BYTES = 16_384
_SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class PublishedHandler(RequestHandler):
    """The answer to GET and HEAD of one path."""

    def initialize(self, published: Published, attribute: str, content_type: str, host_names: frozenset[str]) -> None:
        """`host_names`: the only values of the Host header that are served; empty: all are."""
        self.published, self.attribute, self.content_type, self.host_names = published, attribute, content_type, host_names

    def set_default_headers(self) -> None:
        self.set_header("Server", "ckptsim")
        for name, value in _SECURITY_HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        if self.host_names and self.request.host_name.lower() not in self.host_names:
            raise HTTPError(421)

    def get(self) -> None:
        text = getattr(self.published, self.attribute)
        if not text:
            raise HTTPError(404)
        self.set_header("Content-Type", self.content_type)
        self.write(text)

    def head(self) -> None:
        self.get()

    def write_error(self, status_code: int, **_: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{status_code} {self._reason}\n")


class _NotFoundHandler(PublishedHandler):
    def get(self) -> None:
        raise HTTPError(404)


class _LimitedServer(HTTPServer):
    """A server whose connections end after CONNECTION_LIMIT_S."""

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        IOLoop.current().call_later(CONNECTION_LIMIT_S, stream.close)  # closing a closed one does nothing
        super().handle_stream(stream, address)


@contextmanager
def serving(published: Published, host: str, port: int) -> Iterator[str]:
    """Serve in a thread; yields the address.  OSError: the port is taken, or not ours to take."""
    sockets = bind_sockets(port, host, family=socket.AF_UNSPEC)
    names = _host_names(host)
    common = {"published": published, "host_names": names}
    paths = {"/metrics": ("metrics", OPENMETRICS), "/": ("page", "text/html; charset=utf-8")}
    routes = [(path, PublishedHandler, common | {"attribute": name, "content_type": kind}) for path, (name, kind) in paths.items()]
    application = Application(
        routes, default_handler_class=_NotFoundHandler, default_handler_args=common | {"attribute": "", "content_type": ""},
        log_function=lambda _handler: None,
    )  # fmt: skip
    loop = asyncio.new_event_loop()
    started = threading.Event()

    def serve() -> None:
        asyncio.set_event_loop(loop)
        server = _LimitedServer(application, no_keep_alive=True, max_header_size=_MAX_HEADER_BYTES, max_body_size=0)
        server.add_sockets(sockets)
        loop.call_soon(started.set)
        loop.run_forever()
        server.stop()
        loop.run_until_complete(server.close_all_connections())
        loop.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    started.wait()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _host_names(host: str) -> frozenset[str]:
    """Names under which a loopback address is reached; empty: the address is public, and its names are not known here."""
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    return frozenset({host, "localhost", "127.0.0.1", "[::1]", "::1"}) if is_loopback else frozenset()

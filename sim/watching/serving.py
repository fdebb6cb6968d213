"""A small server of what is published: `/metrics` for Prometheus, and the page at `/`.  One request after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PATIENCE_S = 5.0
"""A reader that is silent for so long is left."""


class Published:
    """What is served now.  A thread reads it while another one replaces it; each attribute is replaced as a whole."""

    def __init__(self) -> None:
        self.metrics = "# EOF\n"
        self.page = ""


@contextmanager
def serving(published: Published, host: str, port: int) -> Iterator[str]:
    """Serve in a thread; yields the address.  OSError: the port is taken, or not ours to take."""

    class PublishedHandler(BaseHTTPRequestHandler):
        """A reader's request."""

        timeout = PATIENCE_S
        server_version = "ckptsim"
        sys_version = ""

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            found = {"/metrics": (published.metrics, OPENMETRICS), "/": (published.page, "text/html; charset=utf-8")}.get(path)
            if found is None or not found[0]:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            body = found[0].encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", found[1])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name of http.server
            """Scrapes are no news."""

    class PublishedServer(HTTPServer):
        """A server that is silent about its readers."""

        def handle_error(self, request: object, client_address: object) -> None:
            """A reader that goes away is no news either."""

    server = PublishedServer((host, port), PublishedHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

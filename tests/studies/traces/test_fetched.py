"""A range query of Prometheus over HTTP: its answer is read like a file."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from sim.app.verbs.traces import read_traces
from sim.studies.traces.parsing import TraceFileError

VALUES = [[1_763_850_000 + 15 * i, str(100 + i)] for i in range(20)]
ANSWER = {
    "status": "success",
    "data": {"resultType": "matrix", "result": [{"metric": {"task": "orders"}, "values": VALUES}]},
}


@contextmanager
def prometheus(answer, status=200):
    """Its URL, and the paths that were asked for."""
    paths = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", paths
    finally:
        server.shutdown()
        server.server_close()


def test_the_answer_is_a_table(tmp_path):
    query = "/api/v1/query_range?query=rate(x[1m])&start=1&end=2&step=15"
    with prometheus(json.dumps(ANSWER)) as (url, paths):
        found = read_traces(url + query, str(tmp_path / "tables"))

    assert [query] == paths
    assert found.rows == [["prometheus", "rates", "20"]]


@pytest.mark.parametrize(("answer", "status", "why"), [("<html>", 200, "web page"), ("{}", 404, "HTTP 404")])
def test_no_answer_says_why(tmp_path, answer, status, why):
    with prometheus(answer, status) as (url, _), pytest.raises(TraceFileError, match=why):
        read_traces(url + "/api/v1/query_range?query=x", str(tmp_path / "tables"))

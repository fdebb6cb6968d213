"""The server of `watch --listen` against readers that are slow, silent or on another site."""

import socket
import time
import urllib.request
from http.client import HTTPConnection

import pytest

from sim.jobs.watch import serving as module
from sim.jobs.watch.serving import OPENMETRICS, serve


@pytest.fixture
def place(monkeypatch):
    """(host, port) of a server; a connection may last 1 s."""
    monkeypatch.setattr(module, "CONNECTION_LIMIT_S", 1.0)
    published = {"/metrics": "ckptsim_answers 1\n# EOF\n", "/": "<h1>watched</h1>" * 1000}
    with serve(published, "127.0.0.1", 0) as address:
        yield "127.0.0.1", int(address.rpartition(":")[2])


def asked(place, method="GET", path="/metrics", **headers):
    connection = HTTPConnection(*place, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer, answer.read().decode()


def test_idle_and_dripping_readers_keep_nobody_waiting(place):
    """Twenty connections that send nothing and ten that never end their request: a scrape is answered all the same."""
    readers = [socket.create_connection(place) for _ in range(30)]
    for reader in readers[:10]:
        reader.sendall(b"GET /metrics HT")
    answer, body = asked(place)

    assert (answer.status, body) == (200, "ckptsim_answers 1\n# EOF\n")
    assert answer.headers["Content-Type"] == OPENMETRICS
    for reader in readers:
        reader.settimeout(10)
        assert reader.recv(1) == b""  # dropped, with or without half a request
        reader.close()


def test_a_reader_that_drips_is_dropped_in_time(place):
    """A byte now and then does not make the time begin again."""
    sent = 0
    with socket.create_connection(place) as reader, pytest.raises(OSError):  # noqa: PT012  reset by the server, or a broken pipe
        for byte in b"GET / HTTP/1.1\r\nX: " + b"y" * 1000:
            reader.sendall(bytes([byte]))
            sent += 1
            time.sleep(0.05)

    assert sent < 500


def test_the_server_stops_while_readers_are_connected():
    """Ctrl-C is not kept waiting by them."""
    with serve({}, "127.0.0.1", 0) as address:
        reader = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))

    with reader:
        assert reader.recv(1) == b""


@pytest.mark.parametrize(
    ("host", "status"), [("evil.example", 421), ("evil.example:9400", 421), ("localhost:9400", 200), ("127.0.0.1", 200)]
)
def test_only_names_of_this_machine_are_served_on_loopback(place, host, status):
    """DNS rebinding: the page of another site resolves its own name to 127.0.0.1."""
    answer, body = asked(place, path="/", Host=host)

    assert answer.status == status
    assert ("watched" in body) == (status == 200)


def test_any_name_is_served_on_a_public_address():
    """Its names are not known here: a Prometheus asks for the name of a service."""
    with serve({"/metrics": "# EOF\n"}, "0.0.0.0", 0) as address:
        answer, body = asked(("127.0.0.1", int(address.rpartition(":")[2])), Host="ckptsim.monitoring.svc:9400")

    assert (answer.status, body) == (200, "# EOF\n")


@pytest.mark.parametrize("path", ["/", "/metrics", "/watch.json"])
def test_each_answer_forbids_what_the_page_does_not_need(place, path):
    answer, _ = asked(place, path=path)

    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.status == (404 if path == "/watch.json" else 200)


def test_head_has_the_headers_alone(place):
    answer, body = asked(place, method="HEAD", path="/")

    assert (answer.status, answer.headers["Content-Length"], body) == (200, "16000", "")


def test_other_methods_are_refused(place):
    assert asked(place, method="POST")[0].status == 405


def test_the_address_can_be_opened():
    with (
        serve({"/metrics": "# EOF\n"}, "localhost", 0) as address,
        urllib.request.urlopen(f"{address}/metrics", timeout=10) as answer,
    ):
        assert answer.status == 200

"""One HTTP endpoint: patience where it helps, one clear line where it does not."""

import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress

import pytest

from sim.jobs.source import rest_client
from sim.jobs.source.rest_client import ATTEMPTS, Client, RestError


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def fake(fake_flink):
    return fake_flink()


def refusal(client, path="/config"):
    with pytest.raises(RestError) as caught:
        client.get(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    return str(caught.value)


@pytest.mark.parametrize("fault", [500, 503, 429, "cut"])
def test_a_passing_trouble_is_waited_out(fake, pauses, fault):
    """Twice wrong, then right: the answer counts, and the pauses grow."""
    fake.faults["/config"] = [fault, fault]

    assert Client(fake.url, pause=pauses.append).get("/config")["flink-version"] == "2.3.0"
    assert len(pauses) == 2
    assert 1.2 < pauses[1] / pauses[0] < 3.4


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (401, "HTTP 401: authentication required: write http://USER:PASSWORD@HOST:PORT"),
        (403, "HTTP 403: access denied"),
        (404, "HTTP 404: 404 at /config"),
        ("page", "answers with a web page, not with JSON: is this Flink's REST address?"),
        ("silence", "answers with nothing"),
        (b"hello", "something that is not JSON"),
    ],
    ids=str,
)
def test_what_no_patience_mends_is_told_at_once(fake, pauses, fault, message):
    fake.faults["/config"] = [fault]

    assert message in refusal(Client(fake.url, pause=pauses.append))
    assert pauses == []


def test_a_reason_is_cut_after_its_secrets_are_hidden(fake, pauses):
    """It is printed, and saved with what is missing."""
    reason = "x" * 100 + " postgresql://me:" + "hunter2-" * 20 + "@db/x"

    def refuse(handler, *_):
        body = json.dumps({"errors": [f"java.sql.SQLException: {reason}\n\tat x"]}).encode()
        handler.send_response(400)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    fake.answer = refuse

    assert "HTTP 400: " + "x" * 100 + " postgresql://******@db/x" in refusal(Client(fake.url, pause=pauses.append))


def test_damaged_json_is_told_as_that(fake, pauses):
    fake.faults["/config"] = ["cut"] * ATTEMPTS
    assert "cut off or damaged" in refusal(Client(fake.url, pause=pauses.append))


def test_a_server_that_does_not_answer(fake, pauses):
    fake.faults["/config"] = ["slow"] * ATTEMPTS

    assert "no answer within 0.1 s" in refusal(Client(fake.url, silence_s=0.1, pause=pauses.append))


def test_an_answer_without_end_is_left(fake, monkeypatch, pauses):
    """However it trickles, and however large it is."""
    monkeypatch.setattr(rest_client, "MAX_RECORDING_BYTES", 10)
    assert "more than 10 bytes" in refusal(Client(fake.url, pause=pauses.append))
    monkeypatch.setattr(rest_client, "MAX_RECORDING_BYTES", 10**6)
    monkeypatch.setattr(rest_client, "ANSWER_S", 0)

    assert "does not come to an end" in refusal(Client(fake.url, pause=pauses.append))


def test_nobody_is_there(pauses):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

        assert refusal(Client(url, pause=pauses.append)).startswith(f"{url}: cannot be reached (Connection refused")


def test_something_else_is_there(pauses):
    """A server that speaks another language."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet():
            for _ in range(ATTEMPTS):
                connection, _ = other.accept()
                connection.sendall(b"SSH-2.0-OpenSSH_9.7\r\n")
                connection.recv(1000)
                connection.close()

        greeting = threading.Thread(target=greet, daemon=True)
        greeting.start()
        message = refusal(Client(f"http://127.0.0.1:{other.getsockname()[1]}", pause=pauses.append))
        greeting.join(5)

    assert "no proper answer" in message or "cannot be reached" in message


def test_tls_where_there_is_none(fake, pauses):
    message = refusal(Client(fake.url.replace("http:", "https:"), pause=pauses.append))

    assert "does not speak TLS as expected" in message
    assert "http://" in message


@pytest.fixture
def secure(fake, tmp_path):
    """The fake speaks TLS from now on; its URL, and the certificate it vouches for itself with."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    about = [
        "-days",
        "2",
        "-subj",
        "/CN=flink",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        key,
        "-out",
        certificate,
    ]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *about], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    fake.server.socket = context.wrap_socket(fake.server.socket, server_side=True)
    return fake.url.replace("http:", "https:"), str(certificate)


def test_tls_with_a_certificate_nobody_knows(secure, pauses):
    assert "its certificate is not trusted" in refusal(Client(secure[0], pause=pauses.append))


def test_tls_ends_in_time_too(fake, secure, pauses, monkeypatch):
    """A byte now and then, of a header that never ends."""
    url, certificate = secure
    monkeypatch.setenv("SSL_CERT_FILE", certificate)

    def trickle(handler, *_):
        with suppress(OSError):  # the client has gone
            handler.connection.sendall(b"HTTP/1.1 200 OK\r\nA: ")
            for _ in range(300):
                handler.connection.sendall(b"b")
                time.sleep(0.02)

    fake.answer = trickle
    begun = time.monotonic()

    assert "no time is left: 0.5 s" in refusal(Client(url, total_s=0.5, pause=pauses.append))
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host",
        "http://",
        "http:///x",
        "http://host:port",
        "http://host:99999",
        "file:///x",
        "http://a b",
        "http://h\n:1",
        "host:8081",
    ],
)
def test_what_is_no_address(url):
    with pytest.raises(RestError, match="is not an address of a REST API: write http://HOST:8081"):
        Client(url)


def test_credentials_are_sent_and_never_shown(fake):
    """Neither in the address nor in a message."""
    client = Client(fake.url.replace("//", "//me:s%40cret@"), headers={"X-Team": "blue"})
    fake.faults["/jobs/overview"] = [404]

    assert client.get("/config")
    assert (fake.headers[0]["Authorization"], fake.headers[0]["X-Team"]) == ("Basic bWU6c0BjcmV0", "blue")
    assert fake.url == client.url
    assert not re.search(r"me:|cret", refusal(client, "/jobs/overview"))
    with pytest.raises(RestError) as caught:
        Client("ftp://me:secret@host")
    assert "secret" not in str(caught.value)


def redirecting(fake, location, code=307):
    answer = fake.answer

    def redirect(handler, requested, names, fault):
        if requested != "/config":
            return answer(handler, requested, names, fault)
        handler.send_response(code)
        if location is not None:
            handler.send_header("Location", location)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return None

    fake.answer = redirect


@pytest.mark.parametrize("code", [302, 307])
def test_no_other_host_is_followed(fake, fake_flink, code):
    """Whatever was given for this one, password, header or cookie, stays here; nor does the other host give answers."""
    other = fake_flink()
    redirecting(fake, f"http://you:secret@{other.url[7:]}/config?token=secret", code)
    client = Client(fake.url.replace("//", "//me:secret@"), headers={"Cookie": "a=secret", "X-Api-Key": "secret"})
    message = refusal(client)

    assert f"redirects to {other.url}/config: if that is Flink, give its address" in message
    assert "secret" not in message
    assert other.requests == []


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("//example.invalid/x", "HTTP 307: redirects to http://example.invalid/x: if that is Flink, give its address"),
        ("http://[::1", "redirects to http://[::1"),
        ("file:///etc/passwd", "redirects to file:///etc/passwd"),
        ("http://a\x1b[31m/", "redirects to http://a\\x1b[31m/"),
        (None, "redirects, and does not say where"),
        ("/config", "/config: if that"),
        ("http://" + "h" * 5000, "redirects to http://hhh"),
    ],
)
def test_a_redirect_is_not_followed_and_told_in_one_line(fake, location, message):
    redirecting(fake, location)

    assert message in refusal(Client(fake.url))


def test_all_questions_together_have_an_end(fake):
    """Also while one answer trickles, or another attempt would help."""
    fake.faults["/config"] = [503] * 10
    begun = time.monotonic()
    message = refusal(Client(fake.url, total_s=0.3))

    assert "HTTP 503" in message
    assert "; then no time is left: 0.3 s were given for all questions" in message
    assert time.monotonic() - begun < 1

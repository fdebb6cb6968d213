"""One HTTP endpoint: patience where it helps, one clear line where it does not."""

import re
import socket
import threading

import pytest

from sim.recordings.rest import client as rest_client
from sim.recordings.rest.client import ATTEMPTS, Client, RestError


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

    assert "2.3.0" == Client(fake.url, pause=pauses.append).get("/config")["flink-version"]
    assert 2 == len(pauses)
    assert 1.2 < pauses[1] / pauses[0] < 3.4


def test_a_lasting_trouble_is_told(fake, pauses):
    """After so many attempts."""
    fake.faults["/config"] = [503] * 10

    assert "HTTP 503" in refusal(Client(fake.url, pause=pauses.append))
    assert ATTEMPTS == len(fake.asked) == len(pauses) + 1


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (401, "HTTP 401: asks who we are: write http://USER:PASSWORD@HOST:PORT"),
        (403, "HTTP 403: does not let us in"),
        (404, "HTTP 404: 404 at /config"),
        ("page", "answers with a web page, not with JSON: is this Flink's REST address?"),
        ("silence", "answers with nothing"),
        (b"hello", "something that is no JSON"),
    ],
    ids=str,
)
def test_what_no_patience_mends_is_told_at_once(fake, pauses, fault, told):
    fake.faults["/config"] = [fault]

    assert told in refusal(Client(fake.url, pause=pauses.append))
    assert [] == pauses


def test_damaged_json_is_told_as_that(fake, pauses):
    """Also nested without end, which no parser survives."""
    fake.faults["/config"] = ["cut"] * ATTEMPTS
    assert "cut off or damaged" in refusal(Client(fake.url, pause=pauses.append))
    fake.faults["/config"] = [b"[" * 300_000] * ATTEMPTS

    assert "cut off or damaged" in refusal(Client(fake.url, pause=pauses.append))


def test_a_server_that_does_not_answer(fake, pauses):
    fake.faults["/config"] = ["slow"] * ATTEMPTS

    assert "no answer within 0.1 s" in refusal(Client(fake.url, silence_s=0.1, pause=pauses.append))


def test_an_answer_without_end_is_left(fake, monkeypatch, pauses):
    """However it trickles, and however large it is."""
    monkeypatch.setattr(rest_client, "LARGEST_BYTES", 10)
    assert "more than 10 bytes" in refusal(Client(fake.url, pause=pauses.append))
    monkeypatch.setattr(rest_client, "LARGEST_BYTES", 10**6)
    monkeypatch.setattr(rest_client, "WHOLE_S", -1)

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
        told = refusal(Client(f"http://127.0.0.1:{other.getsockname()[1]}", pause=pauses.append))
        greeting.join(5)

    assert "no proper answer" in told or "cannot be reached" in told


def test_tls_where_there_is_none(fake, pauses):
    told = refusal(Client(fake.url.replace("http:", "https:"), pause=pauses.append))

    assert "does not speak TLS as expected" in told
    assert "http://" in told


@pytest.mark.parametrize(
    "url",
    ["ftp://host", "http://", "http:///x", "http://host:port", "http://host:99999", "file:///x", "http://a b", "http://h\n:1", "host:8081"],
)
def test_what_is_no_address(url):
    with pytest.raises(RestError, match="is no address of a REST API: write http://HOST:8081"):
        Client(url)


def test_credentials_are_sent_and_never_shown(fake):
    """Neither in the address nor in a message."""
    client = Client(fake.url.replace("//", "//me:s%40cret@"), headers={"X-Team": "blue"})
    fake.faults["/jobs/overview"] = [404]

    assert client.get("/config")
    assert ("Basic bWU6c0BjcmV0", "blue") == (fake.headers[0]["Authorization"], fake.headers[0]["X-Team"])
    assert fake.url == client.url
    assert not re.search(r"me:|cret", refusal(client, "/jobs/overview"))
    with pytest.raises(RestError) as caught:
        Client("ftp://me:secret@host")
    assert "secret" not in str(caught.value)


def test_a_redirect_gets_no_credentials_of_another_host(fake, fake_flink):
    """A standby JobManager may point elsewhere; the password stays at home."""
    other = fake_flink()
    answer = fake.answer

    def redirect(handler, path, names, fault):
        if path != "/config":
            return answer(handler, path, names, fault)
        handler.send_response(307)
        handler.send_header("Location", other.url + path)
        handler.end_headers()
        return None

    fake.answer = redirect

    assert "flink-version" in Client(fake.url.replace("//", "//me:secret@")).get("/config")
    assert "Authorization" in fake.headers[0]
    assert "Authorization" not in other.headers[0]

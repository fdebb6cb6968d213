"""The server of `watch --listen` against readers that are slow, silent or on another site."""

import math
import re
import socket
import time
import urllib.request
from collections import Counter
from http.client import HTTPConnection

import pytest
from prometheus_client import parser as older
from prometheus_client.openmetrics import parser as openmetrics
from ruamel.yaml import YAML
from typer.testing import CliRunner

from sim.app.cli import app
from sim.jobs.watch import serving as module
from sim.jobs.watch.forecast import Circumstances, Forecast
from sim.jobs.watch.observation import JobObservation, SeenCheckpoint
from sim.jobs.watch.serving import OPENMETRICS, open_metrics_text, serve
from sim.jobs.watch.watcher import Watcher, WatchState
from tests.places import ROOT


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


# ---- The metrics of a watch are OpenMetrics text: read by a strict reader here, and by Prometheus' own.


NAME = 'a "job"\\ of\nmine'
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)')


@pytest.fixture
def text():
    observation = JobObservation(
        10**12, "a" * 32, NAME, "RUNNING", 0, "2.3.0", {"src": 2}, ("src",), {}, 1, 0, (), {}, ()
    )
    forecast = Forecast(10**12, observation.job, 100.0, 200.0, (1.5, 2.0), 20, Circumstances())
    state = WatchState(
        observation=observation,
        forecast=forecast,
        counts=Counter({"polls answered": 3, "checkpoints within": 7, "missed": 2}),
    )
    state.recent = [
        SeenCheckpoint(observation.job, n, "COMPLETED", 10**12 + n, 100.0 + n, state_bytes={"count": 5 * n})
        for n in range(2, 9)
    ]
    return open_metrics_text(Watcher(state, 2000.0), 42)


def families(text):
    """Family -> (type, {labels: value}) by the grammar of OpenMetrics 1.0: metadata first and once, families whole, an end mark."""
    *lines, end = text.split("\n")[:-1]
    found = {}
    family = None
    for line in lines:
        if match := re.fullmatch(r"# (TYPE|UNIT|HELP) ([a-z_]+) (.+)", line):
            what, name, rest = match.groups()
            if what == "TYPE":
                assert name not in found, name
                family = found[name] = (rest, {})
            assert family is found[name]
            assert not family[1], line  # metadata stand before the samples
            assert what != "UNIT" or name.endswith(f"_{rest}"), line
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        kind = family[0]
        assert name == next(reversed(found)) + ("_total" if kind == "counter" else ""), line
        assert labels not in family[1], line
        assert math.isfinite(float(value))
        assert kind != "counter" or float(value) >= 0
        family[1][labels or ""] = float(value)

    assert end == "# EOF"
    assert all(samples for _, samples in found.values())
    return found


def test_a_strict_reader_reads_it(text):
    """Each family with its samples; the name of the job is escaped."""
    found = families(text)
    job = 'flink_job="a \\"job\\"\\\\ of\\nmine"'

    assert {f'{job},verdict="within"': 7.0} == found["ckptsim_checkpoints"][1]
    assert {f'{job},percentile="50"': 0.1, f'{job},percentile="90"': 0.2} == found["ckptsim_forecast_seconds"][1]
    assert {job: 1.0} == found["ckptsim_forecast_holds"][1]
    assert {job: 42.0} == found["ckptsim_requests"][1]
    assert {f'{job},vertex="count"': 40.0} == found["ckptsim_state_bytes"][1]
    assert ("gauge", {job: 2.0}) == found["ckptsim_limit_seconds"]


def test_prometheus_own_reader_reads_it(text):
    """That of OpenMetrics, and that of the older text, which the textfile collector's is."""
    families = list(openmetrics.text_string_to_metric_families(text))
    samples = {(sample.name, sample.value) for family in families for sample in family.samples}

    assert ("ckptsim_forecast_factor", 1.5) in samples
    assert samples == {
        (sample.name, sample.value)
        for family in older.text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert NAME in {sample.labels["flink_job"] for family in families for sample in family.samples}


@pytest.mark.parametrize("file", ["grafana.json", "alerts.yaml"])
def test_the_dashboard_and_the_alerts_have_metrics_that_are_published(file):
    """An expression about a metric that does not exist draws nothing, and never alerts."""
    families = re.findall(r'"(ckptsim_\w+)",\s*"(gauge|counter)"', (ROOT / "sim/jobs/watch/serving.py").read_text())
    names = re.findall(r"\bckptsim_\w+", (ROOT / "docs/watch" / file).read_text())

    assert set(names) <= {name + "_total" * (kind == "counter") for name, kind in families}
    assert len(names) >= 6


def test_the_manifest_runs_a_command_that_exists():
    (deployment,) = (
        each for each in YAML().load_all(ROOT / "docs/watch/kubernetes.yaml") if each["kind"] == "Deployment"
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    arguments = [text for text in container["args"] if text.startswith("--")]

    assert container["args"][0] == "watch"
    assert set(arguments) <= set(re.findall(r"--[a-z]+", CliRunner().invoke(app, ["watch", "--help"]).output))

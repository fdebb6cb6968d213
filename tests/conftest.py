"""Settings of the whole suite: how hard Hypothesis looks (`HYPOTHESIS_PROFILE`), and that Ctrl-C means what it says; a Flink to talk to."""

import gc
import json
import os
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import hypothesis
import pytest

from tests.places import DATA, REST

pytest_plugins = ["tests.cpu_seconds", "tests.groups"]

# Shrinking is worth its time, explaining is not: it traces every line of a simulation.
PHASES = [phase for phase in hypothesis.Phase if phase is not hypothesis.Phase.explain]

# dev: quick, while writing.  ci: as many, but the same ones every time, whatever the machine's mood.  deep: nightly.
hypothesis.settings.register_profile("dev", max_examples=25, deadline=None, phases=PHASES)
hypothesis.settings.register_profile(
    "ci", max_examples=25, derandomize=True, deadline=None, print_blob=True, phases=PHASES
)
# again: a third of these, on one more Python, which is what is tested there.
hypothesis.settings.register_profile(
    "again", max_examples=8, derandomize=True, deadline=None, print_blob=True, phases=PHASES
)
hypothesis.settings.register_profile(
    "deep", max_examples=2000, deadline=None, phases=PHASES, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
# mutants: what is broken on purpose fails, and need not be made small.
hypothesis.settings.register_profile(
    "mutants",
    max_examples=25,
    derandomize=True,
    deadline=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# A shell's background job starts with interrupts ignored, and so would everything the tests of Ctrl-C start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


os.environ.setdefault("SOURCE_DATE_EPOCH", "1790000000")  # files of results have a date: here all have the same


ONCE = (
    *(f"tests/{folder}/" for folder in ("advice", "benchmarks", "claims", "injections", "jobs/evidence")),
    *(f"tests/{folder}/" for folder in ("invariants/jobs", "mutations", "worlds")),
    *(f"tests/{file}.py" for file in ("app/cli/test_advise", "app/cli/test_excerpts", "test_public_reports")),
)
"""Folders and files whose tests are all marked `once`: of this repository's tools, of recordings, and of runs that come out alike everywhere.

What they run, the quick tests of `runtime`, `plane` and `studies` run on each Python; `tests/app/verbs` asks there for advice.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Before marks are selected."""
    for item in items:
        if item.nodeid.startswith(ONCE):
            item.add_marker(pytest.mark.once)


def pytest_collection_finish():
    """What is loaded now stays: looking through it for garbage, again and again, costs more than many tests."""
    gc.collect()
    gc.freeze()


class FakeFlink:
    """A REST API on loopback that repeats what a real one said: saved answers, and one sample of metrics after the other.

    `faults`: path (or "*") -> what goes wrong, one request after the other: a status, "slow", "cut", "page", "silence", bytes, or None.
    """

    def __init__(self, saved):
        from sim.jobs.source.saved import read_saved

        snapshot = read_saved(saved)
        self.job, self.answers = snapshot.job, dict(snapshot.answers)
        self.samples, self.times_ms = list(snapshot.samples.values()), list(snapshot.samples)
        self.requests, self.headers, self.faults, self.turn = [], [], {}, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                outer.headers.append(dict(self.headers))
                path, _, query = self.path.partition("?")
                fault = next((waiting.pop(0) for key in (path, "*") if (waiting := outer.faults.get(key))), None)
                outer.answer(self, path, query.removeprefix("get=").split(",") if query else None, fault)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler, path, names, fault):
        content = json.dumps(self.what_is_at(path, names)).encode()
        if fault == "slow":
            time.sleep(0.5)
        status = fault if isinstance(fault, int) else 404 if content == b"null" else 200
        body = {"cut": content[: len(content) // 2], "page": b"<!doctype html><html>", "silence": b""}.get(
            fault, content
        )
        body = fault if isinstance(fault, bytes) else body
        if status != 200:
            body = json.dumps(
                {"errors": [f"org.apache.flink.runtime.rest.NotFoundException: {status} at {path}\n\tat org..."]}
            ).encode()
        try:
            handler.send_response(status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        except OSError:
            pass  # the client went away

    def what_is_at(self, path, names):
        if path == f"/jobs/{self.job}":
            return self.answers[path] | {"now": self.times_ms[min(self.turn, len(self.times_ms) - 1)]}
        if not path.endswith("/metrics") or path not in self.samples[0]:
            return self.answers.get(path)
        if names is None:
            return [{"id": metric["id"]} for metric in self.samples[0][path]]
        if path == next(iter(self.samples[0])):
            self.turn += 1  # a new round of questions
        sample = self.samples[min(self.turn, len(self.samples)) - 1]
        return [metric for metric in sample[path] if metric["id"] in names]


@pytest.fixture
def fake_flink():
    """``fake_flink("pressed")`` -> a server that answers as that job did (tests/data/rest)."""
    started = []

    def start(name="pressed"):
        started.append(FakeFlink(REST / f"{name}.zip"))
        return started[-1]

    yield start
    for fake in started:
        fake.server.shutdown()
        fake.server.server_close()


STUDY = (DATA / "tiny.yaml").read_text()


@pytest.fixture
def study():
    """A job small enough to be simulated in a blink, under several strategies."""
    from sim.model.schema.study import loads

    return loads(STUDY, "tiny")

"""Outages, time limits and retries: what fails for the moment is tried again, what fails too often fails for good."""

import re
from dataclasses import replace

import pytest

from sim.model.storage import Retry, Storage
from tests.places import SIM
from tests.storage.lab import MB, MS, Lab, dfs

FLAT = Storage(bytes_per_second=100 * MB, close_ns=10 * MS, metadata_ns=20 * MS)
PATIENT = Retry(attempts=4, backoff_ns=100 * MS)


def outage(lab, at_ms, until_ms):
    lab.env.timeout(at_ms * MS).callbacks.append(lambda _: lab.storage.fail_until(until_ms * MS))


@pytest.mark.parametrize("options", [FLAT, dfs()])
def test_a_long_outage_is_a_failure(options):
    """Attempts at 0, 500, 700 and 1100 ms (100, 200, 400 ms apart), down until 2000: given up half-written."""
    lab = Lab(replace(options, retry=PATIENT))
    lab.start("a", lab.storage.write(100 * MB, "a"))
    outage(lab, 400, 2000)

    assert lab.run() == {"a": 400 + 100 + 200 + 400}
    assert lab.failed == {"a": "storage is down until 2 s (4 attempts)"}
    (stored,) = lab.storage.files
    assert (stored.complete, stored.durable_ns, stored.given_up_ns) == (False, None, 1100 * MS)
    assert not lab.storage.files.exists(stored.id)


def test_one_attempt_fails_at_once():
    lab = Lab(replace(FLAT, retry=Retry(attempts=1)))
    lab.storage.fail_until(10**15)
    lab.start("a", lab.storage.write(1, "a"))

    assert lab.run() == {"a": 0}
    assert list(lab.failed) == ["a"]


def test_reads_metadata_and_deletes_fail_too():
    """Every verb insists, and then raises."""
    lab = Lab(replace(dfs(latency_ms=10), retry=Retry(attempts=2, backoff_ns=MS)))
    file = lab.env.run(until=lab.env.process(lab.storage.write(1, "x")))
    lab.storage.fail_until(10**15)
    lab.start("read", lab.storage.read(1, "x"))
    lab.start("metadata", lab.storage.write_metadata(1))
    lab.start("delete", lab.storage.delete([file]))
    lab.run()

    assert {"read", "metadata", "delete"} == set(lab.failed)


def test_a_file_that_cannot_be_deleted_does_not_keep_the_others():
    """Down for ever: each is tried, and then it is told."""
    lab = Lab(replace(dfs(latency_ms=10), retry=Retry(attempts=2, backoff_ns=10 * MS)))
    ids = [lab.env.run(until=lab.env.process(lab.storage.write(1, name))) for name in "ab"]
    lab.storage.fail_until(10**15)
    lab.start("delete", lab.storage.delete(ids))
    lab.run()

    assert list(lab.failed) == ["delete"]
    assert [file for file in ids if lab.storage.files.exists(file)] == []


def test_an_attempt_has_a_time_limit():
    """A second's write with 300 ms per attempt never gets through: 3 x 300 and the pauses between."""
    lab = Lab(replace(FLAT, retry=Retry(attempts=3, backoff_ns=100 * MS, timeout_ns=300 * MS)))
    lab.start("a", lab.storage.write(100 * MB, "a"))

    assert lab.run() == {"a": 3 * 300 + 100 + 200}
    assert lab.failed == {"a": "no answer within 0.3 s (3 attempts)"}


def test_only_events_that_nobody_must_wait_for_fail():
    """Who waits for a failure may be interrupted in its very instant; an event that minds would end the whole run."""
    files = (path for room in ("storage", "state", "runtime") for path in (SIM / room).rglob("*.py"))
    failing = [path.name for path in files if re.search(r"(?<!world)(?<!outcome)\.fail\(", path.read_text())]

    assert failing == ["requests.py"]

"""Files by a few threads, work that nobody waits for, outages, time limits and retries."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import simpy

from sim.model.storage import Retry, Storage
from sim.storage.requests import run_detached
from tests.places import SIM
from tests.storage.lab import MB, MS, Lab, dfs

# Work that nobody waits for: it goes on in the turns of what it awaits, and hears of failures.


def test_work_goes_on_in_the_turns_of_what_it_awaits():
    env = simpy.Environment()
    story = []
    over = env.event().succeed("known")
    env.run()

    def work():
        yield env.timeout(3)
        story.append(("waited", env.now))
        story.append(((yield over), env.now))
        yield env.timeout(2)
        story.append(("done", env.now))

    under_way = work()
    run_detached(under_way, next(under_way))
    env.run()

    assert story == [("waited", 3), ("known", 3), ("done", 5)]


def test_what_is_awaited_first_may_be_over_already():
    env = simpy.Environment()
    over = env.event().succeed("known")
    env.run()
    story = []

    def work():
        story.append((yield over))

    under_way = work()
    run_detached(under_way, next(under_way))

    assert story == ["known"]


def test_broken_off_work_hears_of_it_where_it_waits():
    """It may still wait for something; broken off again when it is over, nothing happens."""
    env = simpy.Environment()
    story = []

    def work():
        try:
            yield env.timeout(10)
        except simpy.Interrupt:
            yield env.timeout(1)
            story.append(("cleaned up", env.now))

    under_way = work()
    carried = run_detached(under_way, next(under_way))
    env.run(until=3)
    carried.break_off()
    env.run()
    carried.break_off()

    assert story == [("cleaned up", 4)]


# Files by a few threads: list scheduling, in the order given.


FLAT = Storage(bytes_per_second=100 * MB, close_ns=10 * MS)


def files(*sizes_mb):
    return [(size * MB, ("sst", i)) for i, size in enumerate(sizes_mb)]


def test_nothing_to_write():
    assert Lab(FLAT).took_ms(Lab(FLAT).write_all([], threads=4)) == 0


def test_reading_back():
    lab = Lab(Storage(read_bytes_per_second=100 * MB))

    assert lab.took_ms(lab.read_all(files(1, 1, 1, 1), threads=2)) == 20


@pytest.mark.parametrize(("read_latency_ns", "latency_ms"), [(None, 15), (0, 0), (40 * MS, 40)])
def test_the_latency_of_a_file_is_added_to_reading(read_latency_ns, latency_ms):
    """That of writing, unless it has another."""
    lab = Lab(Storage(read_bytes_per_second=100 * MB, close_ns=15 * MS, read_latency_ns=read_latency_ns))

    assert lab.took_ms(lab.read_all(files(1, 1, 1, 1), threads=2)) == 2 * (10 + latency_ms)


def test_an_outage_holds_up_reading_that_takes_no_time():
    lab = Lab(Storage(retry=Retry(attempts=9, backoff_ns=100 * MS, max_backoff_ns=100 * MS)))
    lab.storage.fail_until(250 * MS)

    assert lab.took_ms(lab.read_all(files(1), threads=1)) == 300


def test_the_first_failure_stops_the_others():
    """Down from 15 ms on, one attempt: nothing more is begun, what is under way is given up."""
    lab = Lab(Storage(bytes_per_second=100 * MB, retry=Retry(attempts=1)))
    lab.start("all", lab.write_all(files(1, 5, 5, 5), threads=2))
    lab.env.timeout(15 * MS).callbacks.append(lambda _: lab.storage.fail_until(10**15))
    lab.run()

    assert lab.ended == {"all": 15}
    assert list(lab.failed) == ["all"]
    assert [(file.name, file.complete) for file in lab.storage.files] == [
        (("sst", 0), True),
        (("sst", 1), False),
        (("sst", 2), False),
    ]
    assert [file.given_up_ns for file in lab.storage.files] == [None, 15 * MS, 15 * MS]


def test_an_interrupt_stops_all_threads():
    lab = Lab(FLAT)
    lab.interrupt(5, lab.write_all(files(100, 100, 100), threads=2))
    lab.env.run()

    assert [(file.complete, file.given_up_ns) for file in lab.storage.files] == [(False, 5 * MS), (False, 5 * MS)]


def test_who_waits_may_be_stopped_in_the_instant_of_a_failure():
    """The outage fails both threads; before that is told to the one who waits for them, it is interrupted: nobody minds."""
    lab = Lab(Storage(bytes_per_second=100 * MB, retry=Retry(attempts=1)))
    process = lab.start("all", lab.write_all(files(5, 5), threads=2))
    process.callbacks.append(lambda event: setattr(event, "defused", True))

    def fail(_):
        lab.storage.fail_until(10**15)
        lab.env.timeout(0).callbacks.append(lambda _: process.interrupt())

    lab.env.timeout(15 * MS).callbacks.append(fail)
    lab.env.run()

    assert isinstance(process.value, simpy.Interrupt)
    assert [file.given_up_ns for file in lab.storage.files] == [15 * MS, 15 * MS]


# Outages, time limits and retries: what fails for the moment is tried again, what fails too often fails for good.


FLAT_STORAGE = Storage(bytes_per_second=100 * MB, close_ns=10 * MS, metadata_ns=20 * MS)
PATIENT = Retry(attempts=4, backoff_ns=100 * MS)


def outage(lab, at_ms, until_ms):
    lab.env.timeout(at_ms * MS).callbacks.append(lambda _: lab.storage.fail_until(until_ms * MS))


@pytest.mark.parametrize("options", [FLAT_STORAGE, dfs()])
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
    lab = Lab(replace(FLAT_STORAGE, retry=Retry(attempts=1)))
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
    lab = Lab(replace(FLAT_STORAGE, retry=Retry(attempts=3, backoff_ns=100 * MS, timeout_ns=300 * MS)))
    lab.start("a", lab.storage.write(100 * MB, "a"))

    assert lab.run() == {"a": 3 * 300 + 100 + 200}
    assert lab.failed == {"a": "no answer within 0.3 s (3 attempts)"}


def test_only_events_that_nobody_must_wait_for_fail():
    """Who waits for a failure may be interrupted in its very instant; an event that minds would end the whole run."""
    files = (path for room in ("storage", "state", "runtime") for path in (SIM / room).rglob("*.py"))
    failing = [path.name for path in files if re.search(r"(?<!world)(?<!outcome)(?<!thread)\.fail\(", path.read_text())]

    assert failing == ["requests.py"]

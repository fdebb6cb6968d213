"""Files by a few threads: list scheduling, in the order given."""

import pytest
import simpy

from sim.model.storage import Retry, Storage
from tests.storage.lab import MB, MS, Lab

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
    lab = Lab(Storage(retry=Retry(attempts=9, backoff_ns=100 * MS, most_backoff_ns=100 * MS)))
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

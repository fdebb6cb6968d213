"""An object store: parts side by side, visible when closed, requests limited."""

from dataclasses import replace
from statistics import median

import pytest

from sim.model.job import Distribution
from sim.model.storage import ObjectStore, Retry, Storage
from sim.storage.media.object_store import RequestLimit
from sim.storage.requests import RequestLog
from tests.storage.lab import MB, MS, SECOND, Lab

PLAIN = ObjectStore(50 * MB, Distribution(10 * MS), part_bytes=5 * MB, parallel_parts=2)


def store(retry=None, nic=None, **changes):
    return Storage(object_store=replace(PLAIN, **changes), retry=retry or Retry(), nic_bytes_per_second=nic)


def test_a_large_file_goes_in_parts_side_by_side():
    """22 MB: initiate 10; parts of 5, 5 until 120, 5, 5 until 230, 2 until 280; complete 10."""
    lab = Lab(store())

    assert lab.took_ms(lab.storage.write(22 * MB, "a")) == 10 + 110 + 110 + 50 + 10


def test_presto_looks_before_it_writes_or_deletes():
    """HEAD and LIST before the first request of a new file, whether it goes in parts or not; HEAD before DELETE."""
    lab = Lab(store(client="presto"))

    assert [lab.took_ms(lab.storage.write(size_mb * MB, name)) for size_mb, name in ((1, "a"), (22, "b"))] == [
        20 + 30,
        20 + 290,
    ]
    assert lab.took_ms(lab.storage.delete([lab.storage.files[0].id])) == 10 + 10


def test_every_delete_and_read_is_a_request():
    lab = Lab(store())
    files = [lab.env.run(until=lab.env.process(lab.storage.write(MB, name))) for name in "ab"]

    assert lab.took_ms(lab.storage.read(MB, "a")) == 30
    assert lab.took_ms(lab.storage.delete(files)) == 20


def test_too_many_requests_are_turned_away():
    """10 requests/s: of 30 at once 10 pass and 20 get a 503 after 10 ms; each second lets 10 more through."""
    lab = Lab(store(Retry(attempts=3, backoff_ns=SECOND), requests_per_second=10))
    for i in range(30):
        lab.start(i, lab.storage.write(0, i))
    ended = lab.run()

    assert sum(ms == 10 for ms in ended.values()) == 10
    assert sum(ms == 1020 for ms in ended.values()) == 10
    assert sum(ms == 3030 for ms in ended.values()) == 10
    assert sum(second.refused for second in lab.storage.medium.requests) == 20 + 10


def test_the_limit_is_a_rate_with_a_second_of_burst():
    """100 at once, then one every 10 ms."""
    limit = RequestLimit(100)

    assert sum(limit.admits(0, 0) for _ in range(150)) == 100
    assert [limit.admits(0, at * MS) for at in (9, 10, 19)] == [False, True, False]
    assert sum(limit.admits(0, 510 * MS) for _ in range(150)) == 50


def test_a_part_that_fails_fails_the_file():
    """Down for ever from the second part on."""
    lab = Lab(store(Retry(attempts=2, backoff_ns=100 * MS)))
    lab.start("a", lab.storage.write(22 * MB, "a"))
    lab.env.timeout(150 * MS).callbacks.append(lambda _: lab.storage.fail_until(10**15))
    lab.run()

    assert lab.ended == {"a": 250}
    assert list(lab.failed) == ["a"]
    assert [stored.complete for stored in lab.storage.files] == [False]


def test_who_is_interrupted_sends_no_more_parts():
    lab = Lab(store())
    lab.interrupt(50, lab.storage.write(500 * MB, "a"))
    lab.env.run()

    assert lab.env.now < 200 * MS


@pytest.mark.parametrize("size_mb", [16, 22], ids=["another part ends at that instant", "no other part ends then"])
def test_a_write_whose_file_is_given_up_goes_on_to_its_end(size_mb):
    """Whoever waits for it is not left behind: the last full part is sent off at 120 ms.  Nothing goes on after that."""
    lab = Lab(store())
    stream = lab.storage.open("a")
    lab.start("write", stream.write(size_mb * MB))
    lab.env.timeout(50 * MS).callbacks.append(lambda _: stream.give_up())
    lab.env.run()

    assert lab.ended == {"write": 120}
    assert lab.env.now < 300 * MS
    assert [stored.complete for stored in lab.storage.files] == [False]


def test_latency_has_a_tail():
    """The defaults: median about 40 ms, one in a hundred above 400."""
    lab = Lab(Storage(object_store=ObjectStore()))
    for i in range(4000):
        lab.start(i, lab.storage.write(0, "small", i))
    took = sorted(lab.run().values())

    assert pytest.approx(median(took), rel=0.1) == 40
    assert 400 < took[-40] < 600


@pytest.mark.parametrize(("size_kb", "ms"), [(1000, 17), (2000, 27), (4000, 50), (8000, 76), (16000, 168)])
def test_a_measured_store(size_kb, ms):
    """Mean time of a PUT to MinIO on one host (logs of faradawn/s3-bench-cortx-logs): 96 MB/s and 6 ms a request, within a fifth."""
    lab = Lab(store(bytes_per_second=96 * MB, latency=Distribution(6 * MS), part_bytes=100 * MB))

    assert ms == pytest.approx(lab.took_ms(lab.storage.write(size_kb * 1000, "a")), rel=0.2)


def test_requests_are_counted_to_the_byte():
    """By second and class of the price list: a small file is one PUT; in the end its bytes are stored, and gone after the delete."""
    lab = Lab(store())
    lab.took_ms(lab.storage.write(100, "a"))
    lab.took_ms(lab.storage.read(40, "a"))
    (first,) = lab.storage.medium.requests

    assert (first.time, first.put, first.get, first.list, first.delete, first.written, first.read, first.stored) == (
        0,
        1,
        1,
        0,
        0,
        100,
        40,
        100,
    )
    lab.run(until_ms=1500)
    lab.took_ms(lab.storage.delete([lab.storage.files[0].id]))
    (_, later) = lab.storage.medium.requests

    assert (later.time, later.put, later.get, later.delete, later.written, later.read, later.stored) == (
        1,
        0,
        0,
        1,
        0,
        0,
        0,
    )


def test_objects_of_the_previous_job_instance_stay_stored():
    """Each instance has its own directory, in which names come again."""
    first, second = RequestLog(), RequestLog()
    first.created(("a",), 5, 0)
    first.created(("b",), 7, 0)
    second.continue_from(first)
    second.created(("a",), 3, SECOND)
    second.removed(("b",), 2 * SECOND)
    second.removed(("a",), 3 * SECOND)

    assert [row.stored for row in second] == [15, 8, 5]

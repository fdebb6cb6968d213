"""Uploads: so many at a time, in turn; each file knows how far it is."""

import pytest
import simpy

from sim.runtime.task.sink import StagedFile, Uploads
from sim.storage.ledger import StorageFailed


class Lab:
    """Uploads that take as many ns as a file has bytes, and fail as often as it says."""

    def __init__(self, threads=1, failures=0):
        self.env = simpy.Environment()
        self.failures = failures
        self.log = []
        self.uploads = Uploads(
            self.env, threads, self.write, lambda file: self.log.append((self.env.now, file.name[0]))
        )

    def write(self, file):
        if file.size_bytes:
            yield self.env.timeout(file.size_bytes)
        if self.failures:
            self.failures -= 1
            raise StorageFailed("gone")
        return 7

    def submit(self, *sizes):
        files = [StagedFile((f"f{i}",), size) for i, size in enumerate(sizes)]
        for file in files:
            self.uploads.submit(file)
        return files


def test_one_thread_takes_files_one_after_the_other():
    lab = Lab()
    lab.submit(5, 3, 2)
    lab.env.run()

    assert lab.log == [(5, "f0"), (8, "f1"), (10, "f2")]


def test_two_threads_take_the_next_file_each():
    lab = Lab(threads=2)
    files = lab.submit(5, 3, 2)
    lab.env.run()

    assert lab.log == [(3, "f1"), (5, "f0"), (5, "f2")]
    assert {7} == {file.stored for file in files}


def test_files_without_time_are_durable_at_once():
    lab = Lab()
    files = lab.submit(0, 0)

    assert [file.stored for file in files] == [7, 7]


@pytest.mark.parametrize("failures", [0, 1])
def test_what_is_cancelled_in_the_instant_it_ends_is_cancelled(failures):
    """Well or not: it is over once, and nobody is told."""
    lab = Lab(failures=failures)
    there = lab.env.event().succeed()
    lab.env.run()
    write = lab.write

    def late(file):
        yield there
        return (yield from write(file))

    lab.uploads.write = late
    (file,) = lab.submit(0)
    lab.uploads.cancel(file)
    lab.env.run()

    assert (lab.log, file.stored, file.under_way) == ([], None, False)


def test_a_file_is_submitted_once():
    """Whoever waits for it again waits for the same upload; a durable one is not uploaded again."""
    lab = Lab()
    (file,) = lab.submit(5)
    lab.uploads.submit(file)
    lab.env.run()
    lab.uploads.submit(file)
    lab.env.run()

    assert lab.log == [(5, "f0")]
    assert file.attempts == 1


def test_a_cancelled_file_leaves_its_thread_to_the_next():
    """Under way or waiting; it may be submitted again."""
    lab = Lab()
    first, _, third = lab.submit(5, 3, 2)
    lab.env.run(until=2)
    lab.uploads.cancel(first)
    lab.uploads.cancel(third)
    lab.env.run()
    lab.uploads.submit(first)
    lab.env.run()

    assert lab.log == [(5, "f1"), (10, "f0")]
    assert third.stored is None
    assert first.attempts == 2


def test_a_failed_file_says_so_and_may_be_tried_again():
    """Whoever waits is woken by the failure too."""
    lab = Lab(failures=1)
    (file,) = lab.submit(5)
    lab.env.run(until=lab.uploads.change())

    assert (lab.env.now, str(file.failure), file.stored) == (5, "gone", None)

    lab.uploads.submit(file)
    lab.env.run()

    assert (file.failure, file.stored) == (None, 7)


def test_a_cancelled_upload_wakes_those_who_wait():
    lab = Lab()
    (file,) = lab.submit(5)
    changed = lab.uploads.change()
    lab.uploads.cancel(file)

    assert changed.triggered


def test_a_file_that_was_cancelled_in_the_line_can_be_submitted_again():
    """It waits behind another one when its upload is called off; later it is wanted after all."""
    lab = Lab()
    _, waiting = lab.submit(5, 3)
    lab.uploads.cancel(waiting)
    lab.env.run(until=7)
    lab.uploads.submit(waiting)
    lab.env.run()

    assert lab.log == [(5, "f0"), (10, "f1")]

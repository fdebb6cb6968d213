"""Uploads: so many at a time, in turn; each file knows how far it is."""

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


def test_files_without_time_are_durable_at_once():
    lab = Lab()
    files = lab.submit(0, 0)

    assert [file.stored for file in files] == [7, 7]


def test_a_file_that_was_cancelled_in_the_line_can_be_submitted_again():
    """It waits behind another one when its upload is called off; later it is wanted after all."""
    lab = Lab()
    _, waiting = lab.submit(5, 3)
    lab.uploads.cancel(waiting)
    lab.env.run(until=7)
    lab.uploads.submit(waiting)
    lab.env.run()

    assert lab.log == [(5, "f0"), (10, "f1")]

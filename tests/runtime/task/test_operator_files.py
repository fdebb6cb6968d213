"""The files of an operator, flush by flush: their sizes, where they are, and what an abort makes of them under each policy."""

from contextlib import suppress
from types import SimpleNamespace

import pytest
import simpy

from sim.model.sinks import Flush
from sim.model.storage import Disk, Storage
from sim.runtime.task.sink import OperatorFiles
from sim.runtime.task_manager import StagingSpace
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import StorageFailed

KB, MS = 1000, 10**6


class Operator:
    """A sink at 1 MB/s to storage and 10 MB/s to its disk: files of 10 kB take 10 ms and 1 ms."""

    def __init__(self, flush=Flush(20 * KB, files=2), policy="survive", limit_bytes=None):  # noqa: B008  # frozen
        self.env = simpy.Environment()
        self.storage = CheckpointStorage(
            self.env, Storage(1_000_000, 0, inline_threshold_bytes=0, disk=Disk(10_000_000)), seed=1
        )
        self.published = {}
        self.space = StagingSpace(self.env, limit_bytes)
        options = SimpleNamespace(abort_policy=policy, upload_threads=1)
        context = SimpleNamespace(
            env=self.env, names=[("sink", 0)], storage=self.storage, scenario=SimpleNamespace(checkpoint=options)
        )
        manager = SimpleNamespace(staging=self.space, number=0)
        output = SimpleNamespace(stored=self.published.__setitem__)
        self.files = OperatorFiles(SimpleNamespace(context=context, task=0, manager=manager, output=output), flush)

    def do(self, work):
        """How long a process takes [ms]."""
        began = self.env.now
        self.env.run(until=self.env.process(work))
        return round((self.env.now - began) / MS)

    def staged(self, checkpoint):
        """A flush lies on the local disk."""
        names = self.files.choose(checkpoint, 1)
        self.do(self.files.stage(checkpoint))
        return names

    def stored(self):
        """Checkpoint and number of each file in storage that is there in full, and how often it was begun."""
        return [
            file.name[3:] for file in self.storage.files if not file.disk and file.complete and file.deleted_ns is None
        ]

    def on_disk(self):
        return [file.name[3:] for file in self.storage.files if file.disk and file.deleted_ns is None]


def work_until_cancelled(work):
    with suppress(simpy.Interrupt):
        yield from work


class TestWays:
    def test_a_failed_upload_fails_the_checkpoint_and_is_tried_again_under_another_name(self):
        operator = Operator(Flush(10 * KB))
        operator.staged(1)
        operator.storage.fail_until(1 << 60)
        with pytest.raises(StorageFailed):
            operator.do(operator.files.upload(1))
        operator.storage.attempts.down_until_ns = 0
        operator.do(operator.files.upload(1))
        assert operator.stored() == [(1, 0, 2)]

    def test_who_finds_no_room_has_the_others_uploaded(self):
        """Two files fit: those of the first flush go to storage while the second one waits."""
        operator = Operator(limit_bytes=20 * KB)
        operator.staged(1)
        assert operator.stored() == []
        operator.staged(2)
        assert operator.stored()[:1] == [(1, 0)]
        assert operator.space.most_bytes == 20 * KB


class TestAborts:
    def aborted(self, policy, uploads=True):
        """The first checkpoint is aborted after 15 ms of its uploads: one file is durable, one half-written."""
        operator = Operator(policy=policy)
        operator.staged(1)
        if uploads:
            snapshot = operator.env.process(work_until_cancelled(operator.files.upload(1)))
            operator.env.run(until=operator.env.now + 15 * MS)
            snapshot.interrupt()
        operator.files.abort(1)
        return operator

    def test_files_that_were_not_begun_are_uploaded_now(self):
        operator = self.aborted("survive", uploads=False)
        operator.env.run()
        assert operator.stored() == [(1, 0), (1, 1)]
        assert len(operator.published) == 2

    def test_files_are_dropped(self):
        """What is durable is deleted, and the next snapshot uploads its own only."""
        operator = self.aborted("drop")
        operator.env.run()
        assert (operator.stored(), operator.on_disk(), operator.space.used_bytes) == ([], [], 0)
        operator.staged(2)
        assert operator.do(operator.files.upload(2)) == 20
        assert operator.stored() == [(2, 0), (2, 1)]


class TestStops:
    def test_a_file_that_is_being_staged_is_not_used(self):
        operator = Operator()
        operator.files.choose(1, 1)
        operator.env.process(operator.files.stage(1))
        operator.env.run(until=MS // 2)
        operator.files.stop()
        operator.env.run()
        assert (operator.on_disk(), operator.space.used_bytes) == ([], 0)

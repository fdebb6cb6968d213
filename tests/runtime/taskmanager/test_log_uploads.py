"""The changelogs of one task manager on their way: how often an upload is attempted."""

import pytest
import simpy

from sim.model.job import Distribution
from sim.model.state import Changelog
from sim.model.storage import ObjectStore, Retry, Storage
from sim.runtime.task_manager import LogPart, LogUploads
from sim.storage.filesystem import CheckpointStorage

MS, MB = 1_000_000, 1_000_000


@pytest.mark.parametrize(("attempts", "expected"), [(1, (5, None)), (2, (515, 1))])
def test_a_failed_attempt_is_followed_by_another_after_a_pause(attempts, expected):
    """An outage at 5 ms breaks the first one off; half a second later storage is back: 10 ms of latency."""
    store = ObjectStore(100 * MB, Distribution(10 * MS), part_bytes=1000 * MB)
    env, durable = simpy.Environment(), []
    storage = CheckpointStorage(env, Storage(object_store=store, retry=Retry(1, MS)), 1)
    part = LogPart(("changelog", "a"), 0, lambda file: durable.append((env.now / MS, file)))
    LogUploads(env, storage, 0, 5).hand_in(part, Changelog(batch_delay_ns=0, upload_attempts=attempts))
    env.timeout(5 * MS).callbacks.append(lambda _: storage.fail_until(100 * MS))
    env.run()

    assert durable == [expected]

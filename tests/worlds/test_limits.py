"""A job that gets nowhere is excused by a limit of its world only if that limit is the reason, as a run without it shows."""

from types import SimpleNamespace

import pandas as pd
import pytest

from sim.model.schema.study import loads
from tests.worlds import trial
from tests.worlds.generator import FOLDER
from tests.worlds.limits import LONG_NS, exceeded, lifted
from tests.worlds.trial import run_text

LIMITED = """# Is anything in the way?
version: 1
job:
  s0: {source: {record: 10 B, rate: 100/s, records: 10}}
  k0: {input: {s0: hash}, state: {size: 1 kB, changelog: {upload-timeout: 50 ms}}, commit: {}}
checkpoint: {interval: 100 ms, timeout: 250 ms, tolerable-failed: 2, staging: {space: 4 MB, when-full: fail}}
storage: {object-store: {requests: 300/s}, disk: {space: 1 MB}, retry: {timeout: 150 ms}}
restart: {cancellation-timeout: 30 ms}
run: {duration: 1 s, seed: 1}
faults: [{storage: outage, at: 300 ms, lasts: 100 ms}]
"""


def world(text=LIMITED):
    return loads(text, name="limited").scenarios[0]


def result(*checkpoints, causes=(), status="RUNNING", served=0):
    """Checkpoints: (how it failed, what it took in ms).  `served`: requests of each second."""
    failures, durations = [failure for failure, _ in checkpoints], [float(ms) for _, ms in checkpoints]
    return SimpleNamespace(
        job_status=status,
        checkpoints=pd.DataFrame({"failure_message": failures, "end_to_end_duration": durations}),
        recoveries=pd.DataFrame({"cause": list(causes), "downtime": [10.0] * len(causes)}),
        requests=pd.DataFrame({"put": [served, served], "list": 0, "get": 0, "delete": 0}),
    )


EXPIRED, SAVED = result(("CHECKPOINT_EXPIRED", 250)), result(("CHECKPOINT_ASYNC_EXCEPTION", 90))


@pytest.mark.parametrize(("took_ms", "is_reason"), [(240, False), (250, False), (251, True)])
def test_a_time_out_is_the_reason_if_something_takes_longer(took_ms, is_reason):
    patient = LIMITED.replace(", retry: {timeout: 150 ms}", "")

    assert is_reason == exceeded(world(patient), EXPIRED, result(("", 100), ("", took_ms)))


@pytest.mark.parametrize(("took_ms", "is_reason"), [(150, False), (151, True)])
def test_a_checkpoint_expires_while_a_request_is_repeated(took_ms, is_reason):
    """A file that takes longer than the time-out of its request never arrives, however long the checkpoint waits."""
    assert is_reason == exceeded(world(), EXPIRED, result(("", took_ms)))


@pytest.mark.parametrize(
    ("held_up", "took_ms"),
    [
        (SAVED, 51),
        (result(("", 9), causes=["flush: no answer within 0.15 s (8 attempts)"]), 51),
        (result(("", 9), causes=["snapshot: an upload of the changelog has failed before"]), 51),
    ],
)
def test_requests_have_time_outs_of_their_own(held_up, took_ms):
    """Those of the changelog are the shortest here."""
    assert exceeded(world(), held_up, result(("", took_ms)))
    assert not exceeded(world(), held_up, result(("", took_ms - 1)))


def test_a_file_may_take_longer_than_a_request_outside_of_checkpoints():
    """The last flush of a task whose data has ended."""
    text = LIMITED.replace(", changelog: {upload-timeout: 50 ms}", "")
    held_up, free = result(("", 9), causes=["flush: no answer within 0.15 s (1 attempts)"]), result(("", 9))

    assert not exceeded(world(text), held_up, free, 150_000_000)
    assert exceeded(world(text), held_up, free, 150_000_001)


def test_who_meets_no_limit_has_no_excuse():
    assert not exceeded(
        world(), result(("CHECKPOINT_DECLINED_TASK_CLOSING", 9), causes=["restore: it is gone"]), result(("", 9000))
    )
    assert not exceeded(world(), EXPIRED, result()), "nothing was measured"
    restarting = result(
        ("CHECKPOINT_EXPIRED", 250), causes=["restore: it is gone"], status="RESTARTING FOR EVER: 9 times"
    )
    assert not exceeded(world(), restarting, result(("", 9000))), (
        "a checkpoint expired, and it restarted for another reason"
    )


@pytest.mark.parametrize(
    "cause", ["flush: 9 B to stage, 1 B of 9 B in use", "restore: the disk has 5 B left", "flush: 503 Slow Down"]
)
def test_room_and_rates_need_no_time(cause):
    assert exceeded(world(), result(causes=[cause]), result())


@pytest.mark.parametrize(("served", "is_reason"), [(270, False), (271, True)])
def test_a_checkpoint_whose_files_fail_at_a_busy_store_lacks_room(served, is_reason):
    """Its message does not say that its requests were refused."""
    held_up = result(("CHECKPOINT_ASYNC_EXCEPTION", 90), served=served)

    assert is_reason == exceeded(world(), held_up, result(("", 50)))
    assert is_reason == (lifted(world(), held_up).storage.object_store.requests_per_second is None)
    assert not exceeded(world(), result(("CHECKPOINT_DECLINED_TASK_CLOSING", 90), served=served), result(("", 50)))


def test_rates_that_nobody_was_refused_by_stay():
    """They are why checkpoints take longer than their time-out: without them the time-out would not look like the reason."""
    free = lifted(world(), EXPIRED)

    assert (free.checkpoint.timeout_ns, free.storage.retry.timeout_ns) == (LONG_NS, None)
    assert (world().checkpoint.staging_bytes, world().storage.disk.space_bytes) == (
        free.checkpoint.staging_bytes,
        free.storage.disk.space_bytes,
    )
    assert world().storage.object_store == free.storage.object_store


def test_limits_are_lifted_and_faults_stay():
    free = lifted(world(), result(causes=["flush: 503 Slow Down"]))
    store = free.storage.object_store

    assert (free.checkpoint.timeout_ns, free.checkpoint.staging_bytes, free.restart.cancellation_timeout_ns) == (
        LONG_NS,
        None,
        0,
    )
    assert free.checkpoint.tolerable_failed > 1000
    assert (store.requests_per_second, free.storage.disk.space_bytes, free.storage.retry.timeout_ns) == (
        None,
        None,
        None,
    )
    assert [vertex.state and vertex.state.changelog.upload_timeout_ns for vertex in free.job.vertices] == [None, None]
    assert world().faults == free.faults


def test_who_gets_nowhere_without_limits_as_well_is_a_finding(monkeypatch):
    """Its requests are given too little time: it would end without that.  Here nothing is lifted."""
    text = (FOLDER / "flush-never-ends.yaml").read_text()

    assert run_text(text).kind == ""
    monkeypatch.setattr(trial, "lifted", lambda scenario, _: scenario)
    outcome = run_text(text, patience=1)
    assert (outcome.kind, outcome.fact.partition(":")[0]) == ("endless", "RESTARTING FOR EVER")


def test_a_job_that_its_limits_hold_up_alone_is_no_twin():
    """Rescaled it comes to its end, undisturbed it does not: there is no end to compare with, and no finding."""
    text = (FOLDER / "rescaled-out-of-its-limits.yaml").read_text()

    assert run_text(text, compare=True).kind == ""

"""Logs of a JobManager, in the words of every version, however they were rotated."""

import gzip

import pytest

from sim.jobs.source.job_log import read_logs
from sim.jobs.source.recorded_job import RecordingError
from tests.places import REST

JOB, OTHER = "0123456789abcdef" * 2, "f" * 32
LOG = REST / "jobmanager.log"


def line(
    clock,
    message,
    *,
    layout="2026-11-21 {clock},000 INFO  o.a.f.runtime.checkpoint.CheckpointCoordinator [] - {message}",
):
    return layout.format(clock=clock, message=message)


def log(tmp_path, *lines, name="jobmanager.log"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def triggered(number, at_ms, kind="CHECKPOINT", job=JOB):
    return f"Triggering checkpoint {number} (type={kind}) @ {at_ms} for job {job}."


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Checkpoint 7 of job {job} expired before completing.", "expired"),
        ("Decline checkpoint 7 by task 5fe of job {job} at tm-1 @ host (dataPort=1).", "declined"),
        ("Discarding checkpoint 7 of job {job} because: the task was not ready", "the task was not ready"),
        ("Discarding checkpoint 7 of job {job}.", "discarded"),
        ("Failed to trigger or complete checkpoint 7 for job {job}. (1 consecutive failed attempts so far)", "failed"),
        ("Failed to trigger checkpoint 7 for job {job}. (1 consecutive failed attempts so far)", "failed"),
    ],
    ids=["expired", "declined", "because", "discarded", "completion", "trigger"],
)
def test_a_failed_checkpoint(tmp_path, message, reason):
    """Its time is that of the lines; what is said of it later changes nothing."""
    later = line(
        "10:09:00", f"Failed to trigger or complete checkpoint 7 for job {JOB}. (1 consecutive failed attempts so far)"
    )
    path = log(tmp_path, line("10:00:00", triggered(7, 10**12)), line("10:00:40", message.format(job=JOB)), later)
    point = read_logs([path]).checkpoints[7]

    assert ("FAILED", 40_000, reason) == (point.status, point.duration_ms, point.reason)


def test_a_reason_is_cut_after_its_secrets_are_hidden(tmp_path):
    """Half an address does not show that it begins with a password."""
    why = "x" * 170 + " postgresql://me:hunter2-and-more-of-it@db/x"
    failed = line("10:00:40", f"Discarding checkpoint 7 of job {JOB} because: {why}")
    point = read_logs([log(tmp_path, line("10:00:00", triggered(7, 10**12)), failed)]).checkpoints[7]

    assert point.reason == "x" * 170 + " postgresql://******@db/x"


def test_triggers_that_got_no_id_and_restores_are_counted(tmp_path):
    path = log(
        tmp_path,
        line("10:00:00", triggered(1, 1)),
        line("10:00:01", f"Restoring job {JOB} from Checkpoint 1 @ 1 for {JOB} located at x."),
        line(
            "10:00:01", f"Failed to trigger checkpoint for job {JOB} since some tasks of job {JOB} has been finished."
        ),
    )

    assert (len(read_logs([path]).refusals), len(read_logs([path]).restores)) == (1, 1)


@pytest.mark.parametrize(
    "layout",
    [
        "{clock},000 INFO - {message}",
        "[2026-11-21T{clock}.000Z] {message}",
        '{{"time":"2026-11-21T{clock}.000Z","message":"{message}"}}',
    ],
    ids=["clock", "iso", "json"],
)
def test_any_layout(tmp_path, layout):
    """What stands before the message is the logger's business; one without dates wraps at midnight."""
    lines = [
        line("23:59:50", triggered(7, 1), layout=layout),
        line("23:59:58", f"Checkpoint 7 of job {JOB} expired before", layout=layout),
    ]
    if "2026" not in layout:
        lines[1] = line("00:00:05", f"Checkpoint 7 of job {JOB} expired before completing.", layout=layout)
        assert read_logs([log(tmp_path, *lines)]).checkpoints[7].duration_ms == 15_000
    lines[1] = line("23:59:58", f"Checkpoint 7 of job {JOB} expired before completing.", layout=layout)

    assert read_logs([log(tmp_path, *lines)]).checkpoints[7].duration_ms == 8_000


def test_parts_of_a_log(tmp_path):
    """Rotated and compressed: a checkpoint may begin in one part and end in the other."""
    old = log(tmp_path, line("10:00:00", triggered(7, 1)), name="jobmanager.log.1")
    new = log(
        tmp_path, line("10:00:01", f"Completed checkpoint 7 for job {JOB} (1 bytes in 350 ms)."), name="jobmanager.log"
    )
    packed = tmp_path / "jobmanager.log.2.gz"
    packed.write_bytes(gzip.compress(line("09:00:00", triggered(6, 1)).encode()))
    read = read_logs([new, old, packed])

    assert {number: point.status for number, point in read.checkpoints.items()} == {6: "IN_PROGRESS", 7: "COMPLETED"}
    assert read.checkpoints[7].triggered_ms == 1


def test_configuration_and_version(tmp_path):
    path = log(
        tmp_path,
        line("10:00:00", triggered(1, 1)),
        line("10:00:00", "Loading configuration property: state.backend.type, rocksdb"),
        line("10:00:00", "Loading configuration property: rest.address, 'host'"),
        line("10:00:00", " Starting StandaloneSessionClusterEntrypoint (Version: 1.17.2, Scala: 2.12, Rev:c0027e5)"),
    )
    read = read_logs([path])

    assert read.options == {"state.backend.type": "rocksdb", "rest.address": "host"}
    assert read.version == "1.17.2"


def test_several_jobs(tmp_path):
    """Are named; vertices are told without their job, so they count for none."""
    scheduled = line("10:00:00", "Source: src (1/2) (abc_0_0) switched from CREATED to SCHEDULED.")
    path = log(tmp_path, scheduled, line("10:00:00", triggered(1, 1)), line("10:00:00", triggered(1, 2, job=OTHER)))
    with pytest.raises(RecordingError, match=f"has several jobs, choose one with --job: {JOB}, {OTHER}"):
        read_logs([path])
    with pytest.raises(RecordingError, match="has no job 'abc'"):
        read_logs([path], "abc")
    read = read_logs([path], "FFF")

    assert (read.job, read.vertices) == (OTHER, {})


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"hello\nworld\n", b"\x00\xff" * 1000, b"x" * 5_000_000], ids=range(5)
)
def test_what_is_no_such_log(tmp_path, content):
    """For example the log of a TaskManager."""
    path = tmp_path / "taskmanager.log"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="no lines of checkpoints") as caught:
        read_logs([path])

    assert "\n" not in str(caught.value)


def test_a_damaged_log(tmp_path):
    path = tmp_path / "jobmanager.log.gz"
    packed = gzip.compress(LOG.read_bytes())
    path.write_bytes(packed[:-20])
    with pytest.raises(RecordingError, match="truncated"):
        read_logs([path])
    with pytest.raises(RecordingError, match="cannot be read"):
        read_logs([tmp_path / "none.log"])


def test_hostile_numbers_and_names_do_no_harm(tmp_path):
    """Parallelism, ids and times of any size; a line without end."""
    huge = "9" * 400
    lines = [
        line("99:99:99", triggered(1, 1)),
        line("10:00:00", triggered(2, 2)),
        line("10:00:00", f"x (1/{huge}) (ab) switched from CREATED to SCHEDULED"),
        "Triggering checkpoint" + " (type=" * 5000,
        line("10:00:00", f"Completed checkpoint 1 for job {JOB} ({'1' * 30} bytes in 3 ms)."),
    ]
    read = read_logs([log(tmp_path, *lines)])

    assert {"IN_PROGRESS"} == {point.status for point in read.checkpoints.values()}
    assert read.vertices == {"x": 32768}

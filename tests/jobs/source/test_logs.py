"""Logs of a JobManager, in the words of every version, however they were rotated."""

import gzip
import json

import pytest

from sim.jobs.reading import read_source
from sim.jobs.source.job_log import read_logs
from sim.jobs.source.recorded_job import RecordingError
from tests.jobs.short_logs import JOB, epoch_ms, log_of, written
from tests.places import REST

OTHER = "f" * 32
LOG = REST / "jobmanager.log"


def read(folder, text, job=None):
    return read_logs([log_of(folder, written(text))], job)


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
    later = f"Failed to trigger or complete checkpoint 7 for job {JOB}. (1 consecutive failed attempts so far)"
    text = f"10:00:00 triggers 7\n10:00:40 {message.format(job=JOB)}\n10:09:00 {later}"
    point = read(tmp_path, text).checkpoints[7]

    assert ("FAILED", 40_000, reason) == (point.status, point.end_to_end_duration, point.reason)


def test_a_log_whose_newest_line_is_first(tmp_path):
    """As log viewers export it; a stack trace follows its line all the same."""
    lines = [
        ("10:00:00", "RUNNING"),
        *written("10:01:00 triggers 7\n10:01:40 expires 7\n10:02:00 triggers 8"),
        ("10:02:05", f"Failed to trigger or complete checkpoint 8 for job {JOB}."),
    ]
    trace = ("", "org.apache.flink.runtime.checkpoint.CheckpointException: The job has failed.")
    points = read_logs([log_of(tmp_path, [lines[-1], trace, *lines[-2::-1]])]).checkpoints

    assert [(points[n].end_to_end_duration, points[n].reason) for n in (7, 8)] == [
        (40_000, "expired"),
        (5000, "The job has failed"),
    ]


def test_events_of_a_log_service_are_lines(tmp_path):
    ms = epoch_ms("10:00:00")
    triggered, completed = (text for _, text in written("10:00:00 triggers 7\n10:00:01 completes 7"))
    nested = {"events": [{"timestamp": ms, "message": triggered}], "more": [{"@timestamp": "x", "log": completed}]}
    (tmp_path / "events.json").write_text(json.dumps(nested))
    point = read_source([tmp_path / "events.json"]).checkpoints[7]

    assert (point.line_ms, point.status, point.trigger_timestamp) == (ms, "COMPLETED", ms)


def test_a_requested_checkpoint(tmp_path):
    """The next one that is triggered, in words of SchedulerBase."""
    text = f"10:00:00 triggers 7\n10:00:40 Triggering a manual checkpoint for job {JOB}.\n10:00:41 triggers 8\n10:01:00 triggers 9"
    points = read(tmp_path, text).checkpoints

    assert [points[n].is_requested for n in (7, 8, 9)] == [False, True, False]


def test_a_reason_is_cut_after_its_secrets_are_hidden(tmp_path):
    """Half an address does not show that it begins with a password."""
    why = "x" * 170 + " postgresql://me:hunter2-and-more-of-it@db/x"
    text = f"10:00:00 triggers 7\n10:00:40 Discarding checkpoint 7 of job {JOB} because: {why}"
    point = read(tmp_path, text).checkpoints[7]

    assert point.reason == "x" * 170 + " postgresql://******@db/x"


def test_triggers_that_got_no_id_and_restores_are_counted(tmp_path):
    refused = f"Failed to trigger checkpoint for job {JOB} since some tasks of job {JOB} has been finished."
    found = read(tmp_path, f"10:00:00 triggers 1\n10:00:01 restores 1\n10:00:01 {refused}")

    assert (len(found.refusals), len(found.restores)) == (1, 1)


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

    def lasts_until(clock):
        lines = written(f"23:59:50 triggers 7\n{clock} expires 7")
        path = log_of(tmp_path, [("", layout.format(clock=at, message=message)) for at, message in lines])
        return read_logs([path]).checkpoints[7].end_to_end_duration

    assert "2026" in layout or lasts_until("00:00:05") == 15_000
    assert lasts_until("23:59:58") == 8_000


def test_parts_of_a_log(tmp_path):
    """Rotated and compressed: a checkpoint may begin in one part and end in the other."""
    old, packed = tmp_path / "jobmanager.log.1", tmp_path / "jobmanager.log.2.gz"
    log_of(tmp_path, written("10:00:00 triggers 7")).rename(old)
    packed.write_bytes(gzip.compress(log_of(tmp_path, written("09:00:00 triggers 6")).read_bytes()))
    new = log_of(tmp_path, [("10:00:01", f"Completed checkpoint 7 for job {JOB} (1 bytes in 350 ms).")])
    found = read_logs([new, old, packed]).checkpoints

    assert {number: point.status for number, point in found.items()} == {6: "IN_PROGRESS", 7: "COMPLETED"}
    assert found[7].trigger_timestamp == found[6].trigger_timestamp + 3_600_000


def test_configuration_and_version(tmp_path):
    found = read(
        tmp_path,
        """
        10:00:00 triggers 1
        10:00:00 Loading configuration property: state.backend, rocksdb
        10:00:00 Loading configuration property: rest.address, 'host'
        10:00:00 Starting StandaloneSessionClusterEntrypoint (Version: 1.17.2, Scala: 2.12, Rev:c0027e5)
        """,
    )

    assert found.options == {"state.backend.type": "rocksdb", "rest.address": "host"}
    assert found.version == "1.17.2"


def test_several_jobs(tmp_path):
    """Are named; vertices are told without their job, so they count for none."""
    text = f"""
        10:00:00 Source: src (1/2) (abc_0_0) switched from CREATED to SCHEDULED.
        10:00:00 triggers 1
        10:00:00 Triggering checkpoint 1 (type=CHECKPOINT) @ 2 for job {OTHER}.
        """
    with pytest.raises(RecordingError, match=f"contains several jobs; select one with --job: {JOB}, {OTHER}"):
        read(tmp_path, text)
    with pytest.raises(RecordingError, match="contains no job 'abc'"):
        read(tmp_path, text, "abc")
    found = read(tmp_path, text, "FFF")

    assert (found.job, found.vertices) == (OTHER, {})


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


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_log_that_windows_wrote(tmp_path, encoding):
    """With the byte order mark by which PowerShell and editors tell the encoding."""
    path = tmp_path / "jobmanager.txt"
    path.write_text(LOG.read_text(), encoding=encoding)

    assert read_source([path]).checkpoints == read_source([LOG]).checkpoints


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
    found = read(
        tmp_path,
        f"""
        99:99:99 Triggering checkpoint 1 (type=CHECKPOINT) @ 1 for job {JOB}.
        10:00:00 triggers 2
        10:00:00 x (1/{huge}) (ab) switched from CREATED to SCHEDULED
        Triggering checkpoint{" (type=" * 5000}
        10:00:00 Completed checkpoint 1 for job {JOB} ({"1" * 30} bytes in 3 ms).
        """,
    )

    assert {"IN_PROGRESS"} == {point.status for point in found.checkpoints.values()}
    assert found.vertices == {"x": 32768}

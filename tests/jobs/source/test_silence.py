"""Logs in which no checkpoint completes any more: what is said first, in the words of Flink 1.12 to 2.3."""

import json
import re

import pytest

from sim.jobs.history.explanation import answer, answer_text
from sim.jobs.history.reading import history_of
from sim.jobs.reading import read_source
from sim.jobs.source.job_log import FINISHED, silence_of_job, where_to_look
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordingError
from tests.jobs.short_logs import JOB, epoch_ms, log_of, written

TASK = "Source: orders -> Map (2/3)"
NOT_EXECUTED = (
    f"Checkpoint triggering task {TASK} of job {JOB} is not being executed at the moment. Aborting checkpoint."
)


def told(folder, *lines):
    """What `explain` says of a log with these (time, message) lines, or texts of such lines.

    A line without a time follows the one before.
    """
    pairs = [pair for line in lines for pair in (written(line) if isinstance(line, str) else [line])]
    return " ".join(answer_text(answer(history_of(read_source([log_of(folder, pairs)])))).split())


def checkpoint(number, at, ms=100, final_ms=1):
    triggered, (_, completed) = written(f"{at} triggers {number}\n{at} completes {number}")
    return triggered, (at, completed.replace("=100 ms", f"={ms} ms").replace("=1 ms", f"={final_ms} ms"))


EXCEPTION = "org.apache.flink.runtime.checkpoint.CheckpointException:"
NOT_ALL = "Not all required tasks are currently running"
REFUSED, UNKNOWN = (
    f"Failed to trigger checkpoint for job {JOB}",
    f"Failed to trigger or complete checkpoint UNKNOWN_CHECKPOINT_ID for job {JOB}",
)
ENDED = "Some tasks of the job have already finished and checkpointing with finished tasks is not enabled"
PAUSE = "The minimum time between checkpoints is still pending. Checkpoint will be triggered after the minimum time"
QUEUED = "The maximum number of queued checkpoint requests exceeded"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([f"{REFUSED} since {NOT_EXECUTED} Failure reason: {NOT_ALL}."], NOT_ALL),
        ([f"{REFUSED} because {NOT_EXECUTED} Failure reason: {NOT_ALL}."], NOT_ALL),
        (
            [
                f"{UNKNOWN}. (0 consecutive failed attempts so far)",
                f"{EXCEPTION} {NOT_EXECUTED} Failure reason: {NOT_ALL}.",
                "\tat a.X.y(X.java:1)",
            ],
            NOT_ALL,
        ),
        ([f"{REFUSED}.", f"{EXCEPTION} {QUEUED}"], QUEUED),
        ([NOT_EXECUTED], NOT_ALL),
        ([NOT_EXECUTED, f"{REFUSED} because {NOT_EXECUTED} Failure reason: {NOT_ALL}."], NOT_ALL),
        ([NOT_EXECUTED.replace("being executed at the moment", "in state RUNNING but FINISHED instead")], FINISHED),
        ([f"{REFUSED} since {PAUSE}.."], PAUSE),
        ([f"{REFUSED}."], "the log gives no reason"),
        (
            [
                f"{REFUSED} since some tasks of job {JOB} has been finished, abort the checkpoint Failure reason: {NOT_ALL}."
            ],
            FINISHED,
        ),
        (
            [
                f"{REFUSED} because {ENDED}. Failure reason: {NOT_ALL}.",
            ],
            FINISHED,
        ),
    ],
    ids=[
        "1.14 since",
        "1.18 because",
        "1.16 exception",
        "queued",
        "1.12 alone",
        "1.12 twice",
        "1.12 finished",
        "pause",
        "no reason",
        "1.13 finished",
        "1.14 finished",
    ],
)
def test_refused_triggers_of_all_versions(tmp_path, lines, reason):
    refused = [
        (at if i == 0 else "", text) for at in ("06:10:00", "06:11:00", "06:12:00") for i, text in enumerate(lines)
    ]

    text = told(tmp_path, "06:09:00 CREATED -> RUNNING", *refused)

    assert text.startswith(
        "No checkpoint has completed since the job began to run at 2025-12-29 06:09:00: 3 min to the end of the log."
    )
    assert f"3 triggers were refused from 2025-12-29 06:10:00 to 2025-12-29 06:12:00: {reason}." in text
    assert (f"The task that did not run: '{TASK}'." in text) == (TASK in "".join(lines))
    assert ("Once tasks finish, checkpoints need execution.checkpointing.checkpoints-after" in text) == (
        reason == FINISHED
    )
    assert ("Look at why tasks do not run" in text) == (reason == NOT_ALL)


def test_what_kubectl_writes_before_lines_is_no_time_of_a_stack_trace(tmp_path):
    declined = f"{EXCEPTION} Asynchronous task checkpoint failed.", "Caused by: java.io.IOException: Could not flush"
    lines = [*written("06:09:00 triggers 1\n06:09:01 declines 1"), *(("", text) for text in declined)]
    path = log_of(tmp_path, lines)
    plain = answer_text(answer(history_of(read_source([path]))))
    prefix = "[pod/jm-0/main] 2025-12-29T06:09:01.123456789Z "
    path.write_text("".join(prefix + line for line in path.read_text().splitlines(keepends=True)))

    assert "IOException: Could not flush" in " ".join(plain.split())
    assert answer_text(answer(history_of(read_source([path])))) == plain


def test_a_savepoint_long_before_has_held_nothing(tmp_path):
    """With so few triggers nobody knows how far apart they are."""
    lines = "06:00:00 triggers 1\n06:00:01 completes 1\n06:03:00 savepoint 2\n06:03:18 completes 2\n06:05:00 triggers 3\n06:15:00 expires 3"

    assert "Savepoint 2 had taken" not in told(tmp_path, lines)


def test_triggers_that_were_refused_before_checkpoints_complete_again(tmp_path):
    """A source that restores its state for minutes: when and which task, although the job is not silent at the end."""
    refused = f"{REFUSED} since {NOT_EXECUTED} Failure reason: {NOT_ALL}."
    text = told(
        tmp_path,
        f"""
        06:09:00 CREATED -> RUNNING
        06:09:10 {refused}
        06:09:20 {refused}
        06:09:30 {refused}
        06:10:00 triggers 1
        06:10:00 completes 1
        06:10:30 triggers 2
        06:10:30 completes 2
        """,
    )

    assert "No checkpoint" not in text
    assert (
        f"3 triggers were refused from 2025-12-29 06:09:10 to 2025-12-29 06:09:30: {NOT_ALL}. The task that did not run: '{TASK}'. "
        "Look at why tasks do not run (slots, a restart loop, a long restore, their last exception)"
    ) in text


SUSPENDED = f"""
    06:11:05 Failed to trigger or complete checkpoint 3 for job {JOB}. (0 consecutive failed attempts so far)
    org.apache.flink.runtime.checkpoint.CheckpointException: Checkpoint Coordinator is suspending."""


@pytest.mark.parametrize(
    ("lines", "reason"),
    [(SUSPENDED, "Checkpoint Coordinator is suspending"), ("", "the job switched to RESTARTING")],
    ids=["logged", "not logged"],
)
def test_a_restart_ends_checkpoints_that_flink_does_not_count(tmp_path, lines, reason):
    """CheckpointFailureManager ignores them, whether it has a line or not; 3 and 4 are no two failures in a row, nor is 3 under way."""
    text = told(
        tmp_path,
        f"""
        06:09:00 CREATED -> RUNNING
        06:09:30 triggers 1
        06:09:30 completes 1
        06:10:00 triggers 2
        06:10:10 expires 2
        06:10:30 triggers 5
        06:10:30 completes 5
        06:11:00 triggers 3
        06:11:04 Heartbeat of TaskManager with id tm-1 timed out.{lines}
        06:11:06 RUNNING -> RESTARTING
        06:11:16 RESTARTING -> RUNNING
        06:12:00 triggers 4
        06:12:10 expires 4
        06:12:20 RUNNING -> FAILING
        06:12:21 FAILING -> FAILED
        """,
    )

    assert "in progress" not in text
    assert "The job failed for good at 2025-12-29 06:12:21, after 1 restart. Look at the exceptions of the job." in text
    assert "1 TaskManager did not answer heartbeats: tm-1 (2025-12-29 06:11:04)." in text
    assert (
        f"Checkpoints ended for reasons that Flink does not compare with execution.checkpointing.tolerable-failed-checkpoints: {reason} (1)."
        in text
    )
    assert "in a row (3 to 4)" not in text


def test_a_root_cause_does_not_hide_why_a_decline_is_not_counted(tmp_path):
    text = told(
        tmp_path,
        """
        06:09:00 CREATED -> RUNNING
        06:09:30 triggers 1
        06:09:30 completes 1
        06:10:00 triggers 2
        06:10:10 declines 2
        x.CheckpointException: Checkpoint was declined (task is closing)
        Caused by: x.SerializedThrowable: y.IOException: closed
        """,
    )

    assert (
        "tolerable-failed-checkpoints: declined by a task on tm-1: Checkpoint was declined (task is closing) (1)."
        in text
    )


def test_one_outlier_is_no_rule(tmp_path):
    """That the one long checkpoint of fourteen is also the one large one happens once in fourteen times."""
    one = [entry for n in range(1, 14) for entry in checkpoint(n, f"07:{n:02}:00", ms=2900)]
    one += [(at, text.replace("9038 bytes", "9500000000 bytes")) for at, text in checkpoint(14, "07:14:00", ms=94900)]

    assert "(clear" not in told(tmp_path, *one)


def test_durations_that_grow_with_the_size(tmp_path):
    """All that a log has: no statistics of subtasks, but sizes."""
    grows = [
        (at, text.replace("9038 bytes", f"{n}000000000 bytes"))
        for n in range(1, 30)
        for at, text in checkpoint(n, f"07:{n:02}:00", ms=2000 * n)
    ]

    text = told(tmp_path, *grows)

    assert "Associated with longer checkpoints (28 checkpoints; p-value" in text
    assert (
        "the longer a checkpoint, the larger the state (with in-flight data, if barriers are unaligned): 2 GB to 29 GB (rank "
        "correlation 1, 28 checkpoints)"
    ) in text


def test_savepoints_hold_checkpoints_back(tmp_path):
    """10 min without a trigger, while checkpoints take 100 ms."""
    regular = [line for n in range(1, 7) for line in checkpoint(n, f"06:1{n}:00")]
    savepoint = "06:17:00 savepoint 7"

    text = told(
        tmp_path, *regular, savepoint, "06:27:00 expires 7", *checkpoint(8, "06:27:00"), *checkpoint(9, "06:28:00")
    )

    assert "No checkpoint was triggered during savepoint 7 (10 min): periodic ones wait for savepoints" in text
    assert "It is a savepoint: its barriers overtake no data, whatever is set for checkpoints" in text
    assert "No checkpoint was triggered" not in told(tmp_path, *regular, savepoint, "06:17:10 expires 7")


FAILED = "Failed to trigger or complete checkpoint {n} for job {job}. (1 consecutive failed attempts so far)"
IO = "Failed to trigger checkpoint {n} for job {job} since An Exception occurred while triggering the checkpoint. IO-problem detected.."
LATE = "Not all tasks acknowledged within execution.checkpointing.timeout"
EXCEEDED = (
    "more checkpoints failed in a row than it tolerates, which is 1 by the log "
    "(execution.checkpointing.tolerable-failed-checkpoints)."
)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["Checkpoint {n} of job {job} expired before completing."], ["checkpoints failed: expired.", LATE]),
        (
            [FAILED, f"{EXCEPTION} Checkpoint expired before completing."],
            ["failed: Checkpoint expired before completing.", LATE],
        ),
        (
            ["Decline checkpoint {n} by task 5fe of job {job} at tm-1 @ host (dataPort=1)."],
            ["failed: declined by a task on tm-1.", "A task declined"],
        ),
        (
            [
                "Decline checkpoint {n} by task 5fe of job {job} at 10.2.3.4:6122-aa @ host (dataPort=1).",
                f"{EXCEPTION} Asynchronous task checkpoint failed.",
                "Caused by: java.io.IOException: Could not flush to s3://b/1",
                "Caused by: software.amazon.awssdk.services.s3.model.S3Exception: Please reduce your request rate.",
            ],
            ["failed: declined by a task on 10.2.3.4:6122-aa: S3Exception: Please reduce your request rate."],
        ),
        (
            [
                "Decline checkpoint {n} by task 5fe of job {job} at 10.2.3.4:6122-aa @ host (dataPort=1).",
                f"{EXCEPTION} Asynchronous task checkpoint failed.",
                (
                    "Caused by: x.SerializedThrowable: java.io.IOException: Size of the state is larger than the maximum permitted memory-backed "
                    "state. Size=5246890, maxSize=5242880."
                ),
            ],
            [
                "Checkpoints are kept in the JobManager's memory, which takes 5 MB per state: set execution.checkpointing.storage"
            ],
        ),
        (
            [
                "Decline checkpoint {n} by task 5fe of job {job} at 10.2.3.4:6122-aa @ host (dataPort=1).",
                f"{EXCEPTION} Asynchronous task checkpoint failed.",
                "Caused by: x.SerializedThrowable: java.lang.Exception: Could not materialize checkpoint {n} for operator agg -> map (2/12)#0.",
                "Caused by: x.SerializedThrowable: java.io.IOException: No space left on device",
            ],
            ["declined by agg -> map (2/12) on 10.2.3.4:6122-aa: IOException: No space left on device"],
        ),
        (
            [
                "Decline checkpoint {n} by task 5fe of job {job} at 10.2.3.4:6122-aa @ host (dataPort=1).",
                f"{EXCEPTION} Asynchronous task checkpoint failed.",
                "Caused by: x.SerializedThrowable: java.io.IOException: Could not open output stream for state backend",
                "Caused by: x.SerializedThrowable: Mkdirs failed to create file:/forbidden/chk-4",
            ],
            ["declined by a task on 10.2.3.4:6122-aa: Mkdirs failed to create file:/forbidden/chk-4"],
        ),
        ([IO], ["IO-problem detected.", "Checkpoint storage could not be written"]),
        ([FAILED, f"{EXCEPTION} Asynchronous task checkpoint failed."], ["A task could not write its state"]),
    ],
    ids=[
        "expired",
        "expired 1.16",
        "declined",
        "declined with its exception",
        "memory",
        "operator",
        "message alone",
        "io",
        "async",
    ],
)
def test_failed_checkpoints_of_all_versions(tmp_path, lines, said):
    failed = []
    for n, at in ((2, "06:10"), (3, "06:20")):
        failed += [
            checkpoint(n, f"{at}:00")[0],
            *((f"{at}:59" if i == 0 else "", text.format(n=n, job=JOB)) for i, text in enumerate(lines)),
        ]
    intolerable = (
        "06:30:00",
        "org.apache.flink.util.FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold.",
    )
    until = (
        "06:09:00 CREATED -> RUNNING",
        *checkpoint(1, "06:09:30"),
        *failed,
        intolerable,
        "06:30:00 RUNNING -> RESTARTING",
    )
    text = told(tmp_path, *until)

    assert text.startswith(
        "No checkpoint has completed since 2025-12-29 06:09:30: 20.5 min to the end of the log. 2 checkpoints failed"
    )
    assert [part for part in said if part not in text] == []
    assert f"The job failed once: {EXCEEDED}" in text

    text = told(tmp_path, *until, "06:31:00 RESTARTING -> RUNNING", *checkpoint(4, "06:31:30"))

    assert "No checkpoint has completed" not in text
    assert text.count(f"The job failed once: {EXCEEDED}") == 1


@pytest.mark.parametrize(
    "line",
    [
        "06:0{i}:00,123 INFO  x - {text}",
        "jobmanager-1  | 2025-12-29 06:0{i}:00,000 WARN  x [] - {text}",
        '{{"@timestamp":"2025-12-29T06:0{i}:00.000Z","message":"{text}","thread":"a"}}',
    ],
    ids=["without dates", "docker", "JSON lines"],
)
def test_other_layouts_that_do_not_tell_when_the_job_began(tmp_path, line):
    refused = f"{REFUSED} since {NOT_EXECUTED} Failure reason: {NOT_ALL}.."
    text = told(tmp_path, *(("", line.format(i=i, text=refused)) for i in range(3)))

    assert text.startswith("No checkpoint has completed since the first line about them at")
    assert "06:00:00: 2 min to the end of the log. 3 triggers were refused from" in text
    assert f"06:02:00: {NOT_ALL}. The task that did not run: '{TASK}'." in text


def test_a_gap_without_any_line_is_silence(tmp_path):
    regular = [line for n in range(1, 5) for line in checkpoint(n, f"06:10:{n}0")]

    assert told(tmp_path, *regular, ("06:10:45", "Heartbeat")).startswith(f"{JOB}: 4 checkpoints are known")
    assert told(tmp_path, *regular, ("06:20:40", "Heartbeat")).startswith(
        "No checkpoint has completed since 2025-12-29 06:10:40: 10 min"
    )


def test_triggers_that_stop_are_told_as_such(tmp_path):
    """The last checkpoint expires, and the coordinator triggers no more (FLINK-26394): a longer timeout does not help."""
    regular = ["06:09:00 CREATED -> RUNNING", *(line for n in range(1, 5) for line in checkpoint(n, f"06:1{n}:00"))]
    expired = [checkpoint(5, "06:15:00")[0], ("06:16:00", f"Checkpoint 5 of job {JOB} expired before completing.")]
    text = told(tmp_path, *regular, *expired, ("06:40:00", "Heartbeat"))
    soon = told(tmp_path, *regular, *expired, ("06:20:00", "Heartbeat"))
    refused = told(
        tmp_path,
        *regular,
        *expired,
        f"06:30:00 {REFUSED} since {NOT_EXECUTED} Failure reason: {NOT_ALL}.",
        ("06:40:00", "x"),
    )

    assert "Nothing is triggered after checkpoint 5 at 2025-12-29 06:15:00, although about 24 more were due" in text
    assert "take longer than execution.checkpointing.timeout" not in text
    assert "Nothing is triggered" not in soon + refused


def test_a_job_that_ended_or_has_just_begun_is_not_silent(tmp_path):
    begun, done = "06:09:00 CREATED -> RUNNING", checkpoint(1, "06:09:20")
    refusal = f"06:09:10 Failed to trigger checkpoint for job {JOB} since {NOT_EXECUTED} Failure reason: x."

    assert "No checkpoint" not in told(tmp_path, begun, refusal, *done)
    assert "No checkpoint" not in told(tmp_path, begun, *done, refusal, refusal, "06:40:00 RUNNING -> FINISHED")


def test_a_log_without_a_start(tmp_path):
    """Completions whose triggers are in an older file."""
    text = told(tmp_path, *[checkpoint(n, f"06:10:{n}0", ms=400)[1] for n in range(2, 6)])

    assert "4 checkpoints are known" in text
    assert "Median 400 ms" in text


def test_a_log_of_a_job_without_checkpoints_says_so(tmp_path):
    with pytest.raises(ValueError, match=f"job {JOB} runs without them: is execution.checkpointing.interval set"):
        told(tmp_path, "06:09:00 CREATED -> RUNNING")


def test_a_job_that_fails_before_each_checkpoint_is_not_said_to_run_without(tmp_path):
    lines = """
        06:09:00 CREATED -> RUNNING
        06:09:10 RUNNING -> RESTARTING
        06:09:20 RESTARTING -> RUNNING
        06:09:30 RUNNING -> FAILING
        06:09:31 FAILING -> FAILED
        """
    with pytest.raises(
        ValueError,
        match=r"failed 2 times, and none was triggered in 31 s. The job failed for good at .*, after 1 restart",
    ):
        told(tmp_path, lines)


def test_a_running_job_is_silent_by_its_rest_api():
    def point(number, status, took=1000):
        return RecordedCheckpoint(
            id=number,
            status=status,
            trigger_timestamp=10**12 + 60_000 * number,
            end_to_end_duration=took,
            failure_message="x",
        )

    done = [point(n, "COMPLETED") for n in (1, 2, 3)]
    end = {"counts": {}, "end": "now"}
    silence = silence_of_job([*done, point(4, "FAILED"), point(5, "FAILED")], 10**12 + 400_000, 60_000, **end)

    assert silence is not None
    assert (silence.lasts_ms, silence.failed, silence.is_whole) == (219_000, ("x", "x"), False)
    assert silence_of_job(done, 10**12 + 240_000, 60_000, **end) is None
    assert silence_of_job(done, -1, 60_000, **end) is None


def failing(at, begun):
    """A task fails at a time, and its job is restarted after two seconds."""
    return f"""
        {at} lake: committer (1/1) (ab_1) switched from RUNNING to FAILED on tm-1-2 @ 10.2.3.3 (dataPort=40123).
        java.lang.RuntimeException: Error while confirming checkpoint
            at org.apache.flink.runtime.taskmanager.Task.notify(Task.java:1)
        Caused by: org.apache.iceberg.exceptions.CommitFailedException: Glue detected concurrent update
        {at} other: sink (1/2) (ab_2) switched from RUNNING to FAILED on tm-1-2.
        {at} RUNNING -> RESTARTING
        {begun} RESTARTING -> RUNNING
        """


def test_the_task_that_failed_the_job_is_named_with_its_exception(tmp_path):
    minutes = [
        f"10:0{n}:00 triggers {n}\n10:0{n}:00 completes {n}\n{failing(f'10:0{n}:01', f'10:0{n}:03')}"
        for n in range(1, 5)
    ]
    text = told(tmp_path, "10:00:00 CREATED -> RUNNING", *minutes)

    assert (
        "A task failed the job: 'lake: committer (1/1)' (4). The last exception: RuntimeException: Error while confirming checkpoint; "
        "CommitFailedException: Glue detected concurrent update."
    ) in text


def test_a_late_acknowledgement_tells_which_task_was_late_and_how_long_would_have_been_enough(tmp_path):
    late = "Received late message for now expired checkpoint attempt 2 from task {} of job {} at tm-1-3 @ 10.2.3.4 (dataPort=1)."
    text = told(
        tmp_path,
        f"""
        10:00:00 CREATED -> RUNNING
        10:00:00 join (8/8) (aa11_cbc3_7_0) switched from CREATED to SCHEDULED.
        10:01:00 triggers 1
        10:01:00 completes 1
        10:02:00 triggers 2
        10:04:00 expires 2
        10:04:10 {late.format("aa11_cbc3_7_0", JOB)}
        10:04:47 {late.format("aa11_dd44_3_0", JOB)}
        10:05:00 triggers 3
        10:05:00 completes 3
        """,
    )

    assert (
        "1 expired checkpoint was acknowledged late, by join (8/8) on tm-1-3 (1), subtask 3 of vertex dd44 on tm-1-3 (1): 2.78 min after "
        "the trigger at most. A longer execution.checkpointing.timeout would have been enough for these"
    ) in text


def test_a_finalization_that_fails_ends_the_checkpoint(tmp_path):
    """The exception names the checkpoint, and no job; its line has no time."""
    lines = ["10:00:00 CREATED -> RUNNING", *checkpoint(1, "10:01:00")]
    for number in (2, 3):
        lines += [
            f"10:0{number}:00 triggers {number}",
            (f"10:0{number}:04", "Error while processing AcknowledgeCheckpoint message"),
            (
                "",
                f"{EXCEPTION} Could not complete the pending checkpoint {number}. Failure reason: Failure to finalize checkpoint.",
            ),
            ("", "Caused by: org.apache.flink.util.FlinkException: could not write into ConfigMap"),
        ]
    text = told(tmp_path, *lines)

    assert (
        "2 checkpoints failed: Failure to finalize checkpoint: FlinkException: could not write into ConfigMap. All tasks had"
        in text
    )
    assert "Checkpoint 3 (barriers not known) was given up after 4 s" in text
    assert "under way at the same time" not in text


def test_a_task_that_declines_has_the_reason_of_its_own_exception(tmp_path):
    """Not that of the frame around it, which differs between attempts."""
    lines = ["10:00:00 CREATED -> RUNNING", *checkpoint(1, "10:01:00")]
    for number in (2, 3):
        lines += [
            f"10:0{number}:00 triggers {number}\n10:0{number}:01 declines {number}",
            (
                "",
                f"x.SerializedThrowable: {EXCEPTION} Task name with subtask : src (1/1)#{number} Failure reason: Task has failed.",
            ),
            ("", "Caused by: x.SerializedThrowable: org.apache.doris.DorisRuntimeException: too many filtered rows"),
        ]
    text = told(tmp_path, *lines)

    assert "declined by a task on tm-1: Task has failed: DorisRuntimeException: too many filtered rows (2)" in text


def test_failures_with_one_cause_on_several_task_managers_are_counted_once(tmp_path):
    lines = ["10:00:00 CREATED -> RUNNING", *checkpoint(1, "10:01:00")]
    for number in (2, 3):
        decline = f"Decline checkpoint {number} by task a{number} of job {JOB} at tm-{number} @ h (dataPort=1)."
        lines += [
            f"10:0{number}:00 triggers {number}",
            (f"10:0{number}:01", decline),
            ("", f"{EXCEPTION} Could not complete."),
            (
                "",
                f"Caused by: com.amazonaws.AmazonS3Exception: Please reduce your request rate (chk-{number}/a{number})",
            ),
        ]
    text = told(tmp_path, *lines)

    assert (
        "All 2 checkpoints that failed have one cause, on tm-2, tm-3: AmazonS3Exception: Please reduce your request rate (chk-2/a2)."
        in text
    )


def test_the_adaptive_scheduler_restarts_a_job_that_it_cancels(tmp_path):
    text = told(
        tmp_path,
        "10:00:00 CREATED -> RUNNING",
        *checkpoint(1, "10:01:00"),
        "10:02:30 RUNNING -> CANCELLING\n10:02:31 CANCELLING -> CANCELED\n10:02:32 restores 1 of 10:01:00\n10:02:33 CREATED -> RUNNING",
        *checkpoint(2, "10:03:00"),
    )

    assert "1 restart went back 90 s, to checkpoint 1: sources read again from there." in text


def test_a_clock_that_is_set_back_makes_no_checkpoints_overlap(tmp_path):
    before = [line for minute in range(1, 5) for line in checkpoint(minute, f"10:0{minute}:00")]
    after = [line for minute in range(1, 5) for line in checkpoint(minute + 4, f"10:0{minute}:00", ms=30_000)]
    text = told(tmp_path, "10:00:00 CREATED -> RUNNING", *before, *after)

    assert "The clock goes back before checkpoint 5: times before and after do not compare." in text
    assert "under way at the same time" not in text


def test_a_restore_from_an_older_checkpoint_than_the_newest_is_told(tmp_path):
    text = told(
        tmp_path,
        "10:00:00 CREATED -> RUNNING",
        *(line for minute in (1, 2, 3) for line in checkpoint(minute, f"10:0{minute}:00")),
        "10:04:00 RUNNING -> SUSPENDED\n10:04:10 restores 2 of 10:02:00\n10:04:10 CREATED -> RUNNING",
        *checkpoint(3, "10:05:00"),
    )

    assert "1 restart went back 2 min, to checkpoint 2" in text
    assert "took checkpoint 2, although 3 had completed: look at what stores completed checkpoints" in text


@pytest.mark.parametrize(("final_ms", "is_told"), [(20_000, True), (2_001, True), (2_000, False), (900, False)])
def test_a_finalization_that_takes_longer_than_the_checkpoint_is_told(tmp_path, final_ms, is_told):
    lines = [line for minute in range(1, 5) for line in checkpoint(minute, f"10:0{minute}:00", 2000, final_ms)]

    text = told(tmp_path, "10:00:00 CREATED -> RUNNING", *lines)

    long = f"needs longer to finalize 4 of the completed checkpoints than their subtasks to acknowledge them: {final_ms / 1000:.3g} s (median;"
    assert (long in text) == is_told


@pytest.mark.parametrize(
    ("hours", "clock"), [(8, "8 h ahead of"), (-3.5, "3.5 h behind"), (13, "13 h ahead of"), (0, "")]
)
def test_the_zone_of_a_log_is_told(tmp_path, hours, clock):
    """Triggers have both times; the log itself says nothing of its zone."""
    triggered, completed = checkpoint(1, "12:00:00")
    moved = re.sub(r"@ (\d+)", lambda at: f"@ {int(at[1]) - round(hours * 3_600_000)}", triggered[1])

    text = told(tmp_path, (triggered[0], moved), completed)

    assert (f"The clock of the log is {clock} UTC" in text) == bool(clock)
    assert bool(clock) or "clock of the log" not in text


def test_a_log_without_dates_has_a_zone_too(tmp_path):
    (tmp_path / "jobmanager.log").write_text(
        f"16:46:57,546 INFO x - Triggering checkpoint 15 (type=CHECKPOINT) @ 1627289217546 for job {JOB}.\n17:00:00,000 INFO x"
    )

    history = history_of(read_source([tmp_path / "jobmanager.log"]))

    assert history.remarks[0].startswith("The clock of the log is 8 h ahead of UTC")
    assert history.checkpoints[0].end_to_end_duration == 782_454  # until the end of the log


def test_a_checkpoint_without_an_end_is_held_against_the_end_of_the_log(tmp_path):
    text = told(tmp_path, *checkpoint(1, "10:05:00"), "10:15:00 triggers 2", "10:24:10 other")

    assert "was still in progress at the end of what was read, 9.2 min after its trigger." in text


def test_an_expired_token_is_not_an_expired_checkpoint():
    longer = "Not all tasks acknowledged within execution.checkpointing.timeout"

    assert not any(
        longer in text for text in where_to_look(["declined by a task on tm-1: S3Exception: The token has expired"])
    )
    assert all(
        any(longer in text for text in where_to_look([reason]))
        for reason in (
            "expired",
            "expired: Checkpoint expired before completing",
            "Checkpoint expired before completing.",
        )
    )


def test_restarts_that_go_back_to_several_checkpoints(tmp_path):
    """One of them was triggered before the log begins; a start from a savepoint is no restart."""
    text = told(
        tmp_path,
        f"""
        06:00:30 CREATED -> RUNNING
        06:00:30 Restoring job {JOB} from Savepoint 4 @ 0 for {JOB} located at hdfs://sp/1.
        06:01:30 RUNNING -> RESTARTING
        06:01:40 restores 5 of 05:59:30
        06:01:40 RESTARTING -> RUNNING
        06:02:00 triggers 6
        06:02:00 completes 6
        06:02:30 RUNNING -> RESTARTING
        06:02:40 restores 6 of 06:02:00
        06:02:40 RESTARTING -> RUNNING
        """,
    )

    assert "2 restarts went back 30 s to 2 min, to checkpoints 5, 6: sources read again from there." in text
    assert "The job was restored 3 times." in text


def test_a_restart_in_the_words_of_1_11(tmp_path):
    text = told(
        tmp_path,
        f"""
        06:00:00 CREATED -> RUNNING
        06:01:00 triggers 5
        06:01:01 completes 5
        06:03:00 RUNNING -> RESTARTING
        06:03:10 Restoring job {JOB} from latest valid checkpoint: Checkpoint 5 @ {epoch_ms("06:01:00")} for {JOB}.
        06:03:10 RESTARTING -> RUNNING
        """,
    )

    assert "1 restart went back 2 min, to checkpoint 5: sources read again from there." in text


def test_a_log_of_a_task_manager_does_not_say_when_triggers_ended(tmp_path):
    lines = [f"06:0{n}:00 triggers {n}\n06:0{n}:01 completes {n}" for n in range(1, 6)]
    log_of(tmp_path, [pair for line in ["06:00:00 CREATED -> RUNNING", *lines] for pair in written(line)])
    logger = "org.apache.flink.streaming.runtime.tasks.AsyncCheckpointRunnable"
    (tmp_path / "taskmanager.log").write_text(f"2025-12-29 09:00:00,000 INFO  {logger} [] - checkpoint 200 completed\n")
    text = answer_text(answer(history_of(read_source([tmp_path]))))

    assert "No checkpoint has completed since" not in text


@pytest.mark.parametrize(("failing", "stopped"), [(True, False), (False, True)])
def test_checkpoints_that_fail_in_their_trigger_are_triggered(tmp_path, failing, stopped):
    """Only that nothing is triggered, without a reason, shows a CheckpointCoordinator that has stopped."""
    lines = [f"06:0{n}:00 triggers {n}\n06:0{n}:01 completes {n}" for n in range(1, 6)]
    fails = "Failed to trigger checkpoint {} for job {}. (1 consecutive failed attempts so far)"
    lines += [f"06:{n:02}:00 {fails.format(n, JOB)}" for n in range(6, 20)] * failing
    text = told(tmp_path, "\n".join(["06:00:00 CREATED -> RUNNING", *lines, "06:20:00 something else"]))

    assert stopped == ("the CheckpointCoordinator has stopped" in text)
    assert failing == ("14 checkpoints failed" in text)


def test_the_task_of_the_attempt_that_declined(tmp_path):
    """By the line with which it was scheduled, if no exception names it."""
    text = told(
        tmp_path,
        """
        06:00:30 CREATED -> RUNNING
        06:00:31 agg -> map (2/12) (5fe) switched from CREATED to SCHEDULED.
        06:01:00 triggers 1
        06:01:10 declines 1
        """,
    )

    assert "declined by agg -> map (2/12) on tm-1" in text


def test_checkpoints_that_are_longer_between_two_restarts(tmp_path):
    """A job that runs on fewer slots, until others are there."""
    run = [checkpoint(n, f"07:{n:02}:00", ms=9000 if n < 10 or n > 20 else 19_000 + n) for n in range(1, 30)]
    for number, at in ((10, "07:09:30"), (21, "07:20:30")):
        run.insert(number, (f"{at} RUNNING -> RESTARTING", f"{at} RESTARTING -> RUNNING"))

    text = told(tmp_path, "07:00:00 CREATED -> RUNNING", *(line for part in run for line in part))

    assert (
        "they are longer between the restarts at 07:09:30 and 07:20:30 UTC: 19 s in 11, 9 s in 17 others (medians)"
        in text
    )


def test_checkpoints_that_become_long_some_time_after_a_restart(tmp_path):
    """The first ones after it are as short as before: something later made the rest longer."""
    run = [checkpoint(n, f"07:{n:02}:00", ms=9000 if n < 17 else 19_000 + n) for n in range(1, 30)]
    run.insert(10, ("07:09:30 RUNNING -> RESTARTING", "07:09:30 RESTARTING -> RUNNING"))

    text = told(tmp_path, "07:00:30 CREATED -> RUNNING", *(line for pair in run for line in pair))

    assert "they are longer after" not in text
    assert "they are longer later in the history: 9 s in the first 9, 19 s in the last 9 (medians) (clear: p = " in text


def test_the_container_of_docker_compose_is_no_part_of_an_exception(tmp_path):
    lines = (
        "2025-12-29 06:01:00,000 INFO  x [] - map (1/1) (5fe_0) switched from RUNNING to FAILED on tm-1.",
        "java.lang.OutOfMemoryError: Java heap space",
    )
    text = told(
        tmp_path,
        "06:00:30 CREATED -> RUNNING",
        *checkpoint(1, "06:00:40"),
        *(("", f"jobmanager-1     | {line}") for line in lines),
        "06:01:00 RUNNING -> RESTARTING",
    )

    assert "The last exception: OutOfMemoryError: Java heap space" in text


RUNNING_AGAIN = """
    06:14:00 RESTARTING -> RUNNING
    06:15:00 triggers 3
    06:15:00 completes 3
"""
OVERSIZED = "org.apache.pekko.remote.OversizedPayloadException: Discarding oversized payload sent to Actor[x]: max allowed size 10485760 bytes"


@pytest.mark.parametrize(
    ("lines", "said", "not_said"),
    [
        (
            ["06:11:00 triggers 2", ("", OVERSIZED), "06:21:00 expires 2"],
            "larger than pekko.framesize (akka.framesize before 1.18), here 10485760b. A checkpoint whose acknowledgement is dropped expires",
            "leadership",
        ),
        (
            [
                "06:11:00 RUNNING -> RESTARTING",
                ("06:14:00", "- Task did not exit gracefully within 180 + seconds."),
                (
                    "06:14:00",
                    "Disconnect TaskExecutor tm-5 because: TaskExecutor is shutting down due to a fatal error.",
                ),
                RUNNING_AGAIN,
            ],
            (
                "TaskManager tm-5 was terminated at 2025-12-29 06:14:00: TaskExecutor is shutting down due to a fatal error. A task did "
                "not stop within task.cancellation.timeout (180 s), for which Flink ends its TaskManager: the restart waited for that. "
                "Look at what the task was doing then (its stack trace is in the log of its TaskManager)."
            ),
            "leadership",
        ),
        (
            [
                (
                    "06:11:00",
                    "Connection to ZooKeeper suspended. The contender no longer participates in the leader election.",
                ),
                "06:11:00 RUNNING -> SUSPENDED",
                "06:11:14 CREATED -> RUNNING",
            ],
            "The JobManager lost its leadership, and the job restarted for that: no task and no checkpoint failed. Look at what kept it",
            "did not stop within",
        ),
        (
            [
                ("06:11:00", "JobMasterServiceLeadershipRunner for job x was revoked leadership with leader id 5d0c."),
                "06:11:00 RUNNING -> SUSPENDED",
                "06:11:14 CREATED -> RUNNING",
            ],
            "no checkpoint failed. Look at what kept it from renewing its lease",
            "began anew",
        ),
    ],
    ids=["framesize", "cancellation", "zookeeper", "lease"],
)
def test_lines_that_explain_a_failure_or_a_downtime(tmp_path, lines, said, not_said):
    """What is in no line of the CheckpointCoordinator; without these lines, none of it is said."""
    begin = ["06:09:00 CREATED -> RUNNING", *checkpoint(1, "06:10:00")]
    text = told(tmp_path, *begin, *lines)

    assert said in text
    assert not_said not in text
    assert said not in told(tmp_path, *begin, *(line for line in lines if isinstance(line, str)))


def test_task_failures_of_two_kinds_are_both_told(tmp_path):
    """The first is the cause; those behind it fail in the restore, which further restarts repeat."""

    def failure(at, *exception):
        failed = (at, "INFO x - agg (3/8) (a1_b2_2_0) switched from RUNNING to FAILED on tm-3 @ host (dataPort=1).")
        return [
            failed,
            *(("", line) for line in exception),
            f"{at} RUNNING -> RESTARTING",
            f"{at} RESTARTING -> RUNNING",
        ]

    missing = (
        "java.lang.Exception: Exception while creating StreamOperatorStateContext.",
        "Caused by: java.io.FileNotFoundException: No such file: s3a://ck/shared/0c4d",
    )
    text = told(
        tmp_path,
        "06:09:00 CREATED -> RUNNING",
        *checkpoint(1, "06:10:00"),
        *failure("06:11:00", "java.lang.OutOfMemoryError: Java heap space"),
        *failure("06:12:00", *missing),
        *failure("06:13:00", *missing),
    )

    assert (
        "The last exception (2 times): Exception: Exception while creating StreamOperatorStateContext; FileNotFound"
        in text
    )
    assert (
        "Before it (once): OutOfMemoryError: Java heap space. Files of the checkpoint that is restored are missing"
        in text
    )


CAUSE = {"name": "com.aliyun.oss.ClientException", "message": "Connection pool shut down"}
STACK = f"{EXCEPTION} Asynchronous task checkpoint failed.\n\tat a.X.y(X.java:1)\nCaused by: {CAUSE['name']}: {CAUSE['message']}\n"
NESTED = {"name": EXCEPTION[:-1], "message": "Asynchronous task checkpoint failed.", "cause": CAUSE}


@pytest.mark.parametrize(
    "thrown",
    [
        {"thrown": NESTED},
        {"thrown": {"extendedStackTrace": STACK}},
        {"stack_trace": STACK},
        {"error.stack_trace": STACK},
        {"error": {"type": "x", "stack_trace": STACK}},
    ],
    ids=["nested", "trace", "text", "ECS", "nested ECS"],
)
@pytest.mark.parametrize("time", ["instant", "timeMillis", "@timestamp"])
def test_exceptions_in_logs_of_json(tmp_path, thrown, time):
    """JsonLayout and JsonTemplateLayout of Log4j, logback, ECS: time and root cause are those of the same log as text."""

    def line(second, message, **fields):
        at_ms = epoch_ms("06:10:00") + second * 1000
        at = {"instant": {"epochSecond": at_ms // 1000, "nanoOfSecond": 0}, "timeMillis": at_ms}
        at["@timestamp"] = f"2025-12-29T06:10:{second:02}.000Z"
        return json.dumps({time: at[time], "loggerName": "o.a.f.CheckpointCoordinator", "message": message, **fields})

    trigger = f"Triggering checkpoint 1 (type=CHECKPOINT) @ {epoch_ms('06:10:00')} for job {JOB}."
    declined = f"Decline checkpoint 1 by task 9d1a of job {JOB} at tm-4 @ host (dataPort=1)."
    failed = line(6, FAILED.format(n=1, job=JOB), **thrown)
    file = tmp_path / "log.json"
    file.write_text("\n".join([line(0, trigger), line(5, declined), failed, ""]))

    (point,) = history_of(read_source([file])).checkpoints
    assert point.end_to_end_duration == 5000
    assert point.failure_message == "declined by a task on tm-4: ClientException: Connection pool shut down"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<html><body>Sign in</body></html>", r"is a page, not an answer of Flink: .*`--header 'NAME: VALUE'`"),
        (
            '{"errors": ["x.NotFoundException: Job 8b1f not found\\n\\tat y"]}',
            r"error of Flink's REST API: .*Job 8b1f not found$",
        ),
        (
            '[{"id": "lastCheckpointSize", "value": "1"}]',
            r"is JSON, but neither a recording nor saved responses of a Flink job; .* /jobs/JOB/checkpoints$",
        ),
        (
            '{"status": {"id": "COMPLETED"}, "operation": {"failure-cause": {"stack-trace": "a.B: b.CheckpointException: expired.\\n\\tat x"}}}',
            r"a savepoint that was asked for, which failed: CheckpointException: expired\.;",
        ),
        (
            "2025-12-29 06:10:00,000 INFO  o.a.f.runtime.taskexecutor.TaskManagerRunner [] - Starting\n",
            "is the log of a TaskManager",
        ),
    ],
)
def test_what_is_no_source_is_named(tmp_path, text, said):
    (tmp_path / "saved").write_text(text)

    with pytest.raises(RecordingError, match=said):
        read_source([tmp_path / "saved"])


def test_a_job_manager_whose_process_ended_is_told(tmp_path):
    """Two starts of the job with nothing between them that ended the first one."""
    text = told(tmp_path, "06:09:00 CREATED -> RUNNING", *checkpoint(1, "06:10:00"), "06:11:14 CREATED -> RUNNING")

    assert "began anew without a failure of the job before (2025-12-29 06:11:14): its process ended" in text

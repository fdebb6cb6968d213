"""Each sentence that `explain` prints about a real job has a template, and holds of Flink's answers or of lines of its log."""

import random
from datetime import UTC, datetime

import pytest

import benchmarks.lab  # noqa: F401 - some recordings are the lab's
from sim.jobs.history.explanation import answer, answer_text
from sim.jobs.history.reading import history_of
from sim.jobs.reading import read_source
from tests.claims.job_templates import TEMPLATES, ToldJob, ToldLog, sentences
from tests.claims.printed import check
from tests.places import DATA, USERS

JOBS = [
    *DATA.glob("planted/*.zip"),
    *DATA.glob("rest/*.zip"),
    *DATA.glob("recordings/*savepoint*.gz"),
    *DATA.glob("recordings/*syncflush2*"),
    *(
        USERS / f"{name}.zip"
        for name in ("R2-burst11-aligned", "R6-grow-aligned", "R7-cores-aligned", "R10-q12-unaligned")
    ),
]
ALL = [
    *(
        path
        for kind in (
            "planted-afresh",
            "users-jobs",
            "backends",
            "scaling",
            "async-io",
            "lost-task-managers",
            "changelog",
        )
        for path in DATA.glob(f"{kind}/*.zip")
    ),
    *DATA.glob("recordings/*.gz"),
    *DATA.glob("held-out/*.gz"),
    *JOBS,
]
JOB = "1f0c2b6a6a3f4d0f8d3f0a8a5f7b9c21"
COORDINATOR = "INFO  org.apache.flink.runtime.checkpoint.CheckpointCoordinator [] -"
REASONS = {
    "expired": "Checkpoint {} of job {} expired before completing.",
    "declined": "Decline checkpoint {} by task a1 of job {} at tm-0.\nCaused by: java.io.EOFException: closed",
}
OVERSIZED = "OversizedPayloadException: Discarding oversized payload sent to Actor[a]: max allowed size 10485760 bytes, actual size"
REFUSALS = {
    "Not all required tasks are currently running.": "Not all required tasks are currently running",
    "Some tasks of the job have already finished and checkpointing with finished tasks is not enabled. "
    "Failure reason: Not all required tasks are currently running.": "tasks have finished, and checkpoints after that are not enabled",
}


def checked(histories):
    """`histories`: (name, what is told, ids of the checkpoints that are asked for)."""
    return check(
        (
            (
                name,
                told,
                [text for number in (None, *ids) for text in sentences(answer_text(answer(told.history, number)))],
            )
            for name, told, ids in histories
        ),
        TEMPLATES,
    )


def recorded(paths, *, each=1):
    """Jobs, and every so many of their checkpoints."""
    for path in paths:
        history = history_of(read_source([path]))
        yield path.name, ToldJob(history), [point.id for point in history.checkpoints][::each]


def random_log(seed):
    """The text of a JobManager's log, and what it has: (second of the day, kind, id or reason)."""
    draw = random.Random(seed)
    at, lines, written, latest = 8 * 3600, [], [], None

    def write(text, kind="", value=None):
        lines.append(
            f"{datetime(2026, 3, 9, tzinfo=UTC):%Y-%m-%d} {at // 3600:02}:{at // 60 % 60:02}:{at % 60:02},117 {text}"
        )
        written.append((at, kind, value))

    def restart(waits_s=0):
        nonlocal at
        failed_at = at
        if waits_s:
            at += waits_s
            write(f"ERROR TaskExecutor [] - Task did not exit gracefully within {waits_s} + seconds.")
        write(
            f"INFO  ExecutionGraph [] - Job orders ({JOB}) switched from state RESTARTING to RUNNING.",
            "restarted",
            waits_s,
        )
        if latest is None:
            write(f"{COORDINATOR} No checkpoint found to restore.", "fresh")
        else:
            number, begun, ms = latest
            write(
                f"{COORDINATOR} Restoring job {JOB} from Checkpoint {number} @ {ms} for {JOB}.",
                "restored",
                (number, failed_at - begun),
            )

    write(f"INFO  ExecutionGraph [] - Job orders ({JOB}) switched from state CREATED to RUNNING.", "running")
    silent_from = draw.choice([0, 4, 9, 99])
    for number in range(1, 13):
        at += 600
        if (number > silent_from or number < 4) and draw.random() < 0.2:
            words, reason = draw.choice(list(REFUSALS.items()))
            write(f"{COORDINATOR} Failed to trigger checkpoint for job {JOB} since {words}", "refused", reason)
            continue
        savepoint = "SavepointType{name='Savepoint'}" if draw.random() < 0.15 else "CheckpointType{name='Checkpoint'}"
        trigger_ms = 1000 * (int(datetime(2026, 3, 9, tzinfo=UTC).timestamp()) + at) + 117
        write(
            f"{COORDINATOR} Triggering checkpoint {number} (type={savepoint}) @ {trigger_ms} for job {JOB}.",
            "triggered",
            number,
        )
        took = draw.randint(20, 400)
        at += took
        if draw.random() < 0.1:  # a run of the job ends, and the checkpoint with it, without a line of its own
            write(
                f"INFO  JobMaster [] - Heartbeat of TaskManager with id tm-{number} timed out.", "lost", f"tm-{number}"
            )
            write(
                f"INFO  ActiveResourceManager [] - Worker tm-{number} is terminated. Diagnostics: exitCode=137, reason=OOMKilled"
            )
            kind = "" if "Save" in savepoint else "stopped"
            write(
                f"INFO  ExecutionGraph [] - Job orders ({JOB}) switched from state RUNNING to RESTARTING.",
                kind,
                "the job switched to RESTARTING",
            )
            restart(draw.choice([0, 90]))
            continue
        if draw.random() < 0.05:  # the JobManager loses its leadership
            write(
                "WARN  ZooKeeperLeaderElectionDriver [] - Connection to ZooKeeper suspended. The contender waits.",
                "suspended",
            )
            kind = "" if "Save" in savepoint else "stopped"
            write(
                f"INFO  ExecutionGraph [] - Job orders ({JOB}) switched from state RUNNING to SUSPENDED.",
                kind,
                "the job switched to SUSPENDED",
            )
            restart()
            continue
        if number > silent_from or draw.random() < 0.2:
            kind = draw.choice(list(REASONS))
            if kind == "expired" and draw.random() < 0.2:
                write(f"ERROR EndpointWriter [] - {OVERSIZED}", "oversized")
            write(f"{COORDINATOR} {REASONS[kind].format(number, JOB)}", "" if "Save" in savepoint else "failed", kind)
            if draw.random() < 0.2:
                write(
                    "org.apache.flink.util.FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold.",
                    "intolerable",
                )
                write(f"INFO  ExecutionGraph [] - Job orders ({JOB}) switched from state RUNNING to RESTARTING.")
                restart()
        else:
            write(
                f"{COORDINATOR} Completed checkpoint {number} for job {JOB} (2000 bytes, checkpointDuration={1000 * took} ms, "
                "finalizationTime=40 ms).",
                "completed",
                number,
            )
            latest = number, at - took, trigger_ms
    at += draw.choice([10, 5000])
    if draw.random() < 0.1:
        write(f"INFO  ExecutionGraph [] - Job orders ({JOB}) switched from state FAILING to FAILED.", "dead")
    write("INFO  other line")
    return "\n".join(lines), tuple(written)


def logs(folder, seeds):
    for seed in seeds:
        text, written = random_log(seed)
        (folder / f"{seed}.log").write_text(text)
        yield seed, ToldLog(history_of(read_source([folder / f"{seed}.log"])), written=written), ()


def test_sentences_about_recorded_jobs_are_true():
    found, exercised = checked(recorded(JOBS, each=20))

    assert found == {}
    assert len(exercised) >= 55


def test_sentences_about_random_logs_are_true(tmp_path):
    found, exercised = checked(logs(tmp_path, range(40)))

    assert found == {}
    assert {
        "silent",
        "refused",
        "silent failures",
        "intolerable",
        "went back",
        "failures apart",
        "fresh restarts",
        "oversized",
        "not canceled",
        "lost leadership",
        "not among them",
        "none is slow",
        "slow",
        "not compared",
        "lost managers",
        "terminated",
        "failed for good",
        "finished tasks",
    } <= {*exercised}


@pytest.mark.slow
def test_each_template_is_exercised_and_true(tmp_path):
    found, exercised = checked(recorded(ALL, each=9))
    of_logs, more = checked(logs(tmp_path, range(60, 260)))

    assert found | of_logs == {}
    assert {template.name for template in TEMPLATES if not (exercised + more)[template.name]} <= UNEXERCISED


UNEXERCISED = {
    "end of input",
    "metadata",
    "some acknowledged",
    "savepoint differs",
    "its manager ends",
    "no places",
    "no subtasks",
    "triggers that stopped",
    "path goes on",
    "longer later",
}
"""Hardly any checkpoint of a recording has one: unit tests of `tests/jobs/history` do."""

"""One answer of Flink's REST API: what it is, what it tells, what it cannot tell, and how to get the rest."""

import json
from dataclasses import replace
from random import Random

import pytest

from sim.app.verbs.explain import explain_real_job, explain_source, is_real
from sim.app.verbs.importing import JobPlace
from sim.jobs.history.explanation import answer, answer_text
from sim.jobs.history.history import History, split
from sim.jobs.history.in_common import circumstances, delayed_triggers, in_common
from sim.jobs.history.reading import history_of, history_of_answer
from sim.jobs.reading import read_source
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordingError
from sim.jobs.source.saved import read_lone_answer, read_saved
from tests.places import DATA

SNAPSHOT = read_saved(DATA / "rest" / "pressed.zip")
OF_JOB = f"/jobs/{SNAPSHOT.job}"
OVERVIEW = SNAPSHOT.answers[f"{OF_JOB}/checkpoints"]
REST = "`ckptsim explain http://HOST:8081 --job JOB` asks for all of it; `ckptsim import http://HOST:8081 --save FOLDER` keeps it in files."


def told(folder, text, name="pasted.json"):
    """What `explain` says of a file with this text."""
    (folder / name).write_text(text)
    assert is_real(str(folder / name))
    return " ".join(explain_real_job(JobPlace([folder / name])).text.split())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "$ curl -s http://jm:8081/jobs/x/checkpoints\n{}"),
        ("b.log", "2025-11-29 10:00:00,000 INFO  answer of the REST API: {}\n"),
        ("c.md", "```json\n{}\n```\n"),
    ],
    ids=["prompt", "prefix of a log", "markdown"],
)
def test_json_with_something_before_it(tmp_path, name, text):
    assert "5 of 79 checkpoints are known" in told(tmp_path, text.replace("{}", json.dumps(OVERVIEW)), name)


@pytest.mark.parametrize("length", [2500, 3000, 3600])
def test_json_that_is_cut_off_is_read_up_to_there(tmp_path, length):
    text = told(tmp_path, json.dumps(OVERVIEW)[:length])

    assert f"cut off at character {length:,} (line 1): what is whole before that is read." in text
    assert "of 79 checkpoints are known" in text


def test_the_slowest_may_not_be_in_the_history(tmp_path):
    """79 checkpoints, five of which Flink still knows: the summary is over all."""
    outside = "The job's slowest checkpoint took 4.9 s according to Flink's summary; it is no longer in the history."
    known = OVERVIEW | {"summary": {"end_to_end_duration": {"max": 4539}}}
    unknown = OVERVIEW | {"summary": {"end_to_end_duration": {"max": -1}}}

    assert outside in " ".join(answer_text(answer(history_of(SNAPSHOT))).split())
    assert outside in told(tmp_path, json.dumps(OVERVIEW))
    assert "The job's slowest" not in told(tmp_path, json.dumps(known))
    assert "The job's slowest" not in told(tmp_path, json.dumps(unknown))


def test_a_history_that_is_empty_or_of_failures_only(tmp_path):
    failed = OVERVIEW["history"][1] | {"status": "FAILED", "end_to_end_duration": -1, "failure_message": None}
    latest = {"latest": {"completed": None, "failed": None}}

    text = told(tmp_path, json.dumps(OVERVIEW | {"history": [failed, failed | {"id": 99}]} | latest))

    assert "2 did not complete" in text
    assert " 0 ms" not in text, "a duration of -1 is not known"
    assert "pasted.json is the answer to /jobs/JOB/checkpoints" in told(
        tmp_path, json.dumps(OVERVIEW | {"history": []} | latest)
    )


def row(number, status, took, **more):
    """A checkpoint in the list of an answer, one a minute."""
    known = {
        "is_savepoint": False,
        "checkpoint_type": "CHECKPOINT",
        "trigger_timestamp": 1_700_000_000_000 + number * 60_000,
    }
    return known | {"id": number, "status": status, "end_to_end_duration": took, "num_subtasks": 24} | more


def listed(*rows, completed=0, longest=0):
    return json.dumps(
        {
            "counts": {"total": 20, "completed": completed, "failed": 20 - completed},
            "summary": {"end_to_end_duration": {"max": longest}},
            "latest": {},
            "history": rows[::-1],
        }
    )


def test_no_checkpoint_has_ever_completed(tmp_path):
    """Said first; a longest duration of 0 is of none."""
    failed = [row(n, "FAILED", 350, failure_message="Asynchronous task checkpoint failed.") for n in (18, 19, 20)]

    text = told(tmp_path, listed(*failed))

    assert text.startswith(
        "No checkpoint has completed since the first one that is known, at 2023-11-14 22:31:20, nor before (0 of 20): 2.01 min to the "
        "last moment in the answer. 3 checkpoints failed: Asynchronous task checkpoint failed. A task could not write its state"
    )
    assert "The job's slowest" not in text
    assert "nor before" not in told(tmp_path, listed(*failed, completed=3))


@pytest.mark.parametrize(
    ("counts", "says", "counted"),
    [
        (
            {"total": 412, "completed": 409, "failed": 3, "in_progress": 0, "restored": 2},
            "Of 412 checkpoints that Flink has counted since the JobMaster of the job began 3 failed; the answer lists 3, and 1 of them failed.",
            (412, 2),
        ),
        ({"total": 412, "failed": 0}, "it counts 0 failed but shows 1.", (0, 0)),
        ({"total": 20, "completed": 1, "failed": 18, "in_progress": 1}, "it counts 1 completed but shows 2.", (0, 0)),
        (
            {"total": 412, "completed": 2, "failed": 3, "in_progress": 0},
            "it counts 412 in total but 2 completed, 3 failed and 0 in progress. These counts are not used.",
            (0, 0),
        ),
        ({"total": 2}, "it counts 2 total but shows 3.", (0, 0)),
    ],
)
def test_counts_are_compared_with_the_history(tmp_path, counts, says, counted):
    rows = [row(18, "COMPLETED", 350), row(19, "FAILED", 350, failure_message="expired"), row(20, "COMPLETED", 350)]
    text = told(tmp_path, json.dumps(json.loads(listed(*rows)) | {"counts": counts}))
    history = history_of_answer(read_lone_answer(tmp_path / "pasted.json"))

    assert says in text
    assert counted == (history.counted, history.restored)


def test_a_path_that_ends_at_a_vertex_without_answers_names_it():
    """The statistics of all subtasks but those of the source."""
    source = next(name for name in SNAPSHOT.answers if "/details/75/subtasks/" in name and is_of_source(name))
    whole = history_of(SNAPSHOT)
    history = history_of(replace(SNAPSHOT, answers={k: v for k, v in SNAPSHOT.answers.items() if k != source}))
    said, before = (" ".join(circumstances(own, own.checkpoint(75))) for own in (history, whole))

    assert "Then the path may go on there." in said
    assert f"Nothing tells of the subtasks of {whole.vertices[0].name}: they had ended" in said
    assert "may go on" not in before


def is_of_source(path):
    """The answer is of the vertex that reads no other."""
    (source,) = [vertex.id for vertex in history_of(SNAPSHOT).vertices if not vertex.inputs]
    return path.endswith(source)


def found_in(took, restarts_ms=()):
    """The features of checkpoints that take so long [ms]."""
    rows = [RecordedCheckpoint.model_validate(row(n, "COMPLETED", int(ms))) for n, ms in enumerate(took, 2)]
    history = History("made up", "", (), tuple(rows), restarts_ms=tuple(restarts_ms))
    known = split(history)
    return in_common(history, known.slow, known.others).findings


def test_durations_that_rise_and_a_step_at_a_restart():
    """Another machine, another version: the run of the job says more than the time."""
    rising, step = [4000 + 300 * n for n in range(24)], [2000 + n for n in range(12)] + [5900 + n for n in range(12)]
    after_ms = row(14, "COMPLETED", 1)["trigger_timestamp"] - 1
    (later,) = found_in(rising)
    texts = [finding.text for finding in found_in(step, [after_ms])]

    assert later.text == "they are longer later in the history: 5 s in the first 8, 9.8 s in the last 8 (medians)"
    assert "they are longer after the restart at 22:27:19 UTC: 5.9 s in 12, 2 s in 12 others (medians)" in texts
    assert not found_in(reversed(rising))


@pytest.mark.parametrize("spread", [0.05, 0.5, 1.5])
def test_durations_that_are_drawn_alike_do_not_rise(spread):
    """200 series of 12 to 60 checkpoints: chance finds something in one of twenty at most."""
    random = Random(7)
    series = [[4000 * random.lognormvariate(0, spread) for _ in range(random.randint(12, 60))] for _ in range(200)]

    assert sum(bool(found_in(took)) for took in series) <= 10


def test_no_checkpoint_was_ever_triggered(tmp_path):
    none = json.loads(listed()) | {"counts": {"total": 0, "completed": 0, "failed": 0}}

    assert "No checkpoint has been triggered: the job has just begun" in told(tmp_path, json.dumps(none))
    assert "No checkpoint has been triggered" not in told(tmp_path, json.dumps(none | {"counts": {"total": 3}}))


def test_checkpoints_that_follow_a_savepoint_at_once_are_not_the_rhythm(tmp_path):
    """One a minute, and four that were due while the savepoint was written."""
    at_once = [
        row(24 + k, "COMPLETED", 1600, trigger_timestamp=1_700_000_000_000 + 28 * 60_000 + 1610 * k)
        for k in range(1, 5)
    ]
    savepoint = row(24, "COMPLETED", 240_000, is_savepoint=True)
    rows = [*(row(n, "COMPLETED", 1600) for n in range(17, 24)), savepoint, *at_once]
    told(tmp_path, listed(*rows, completed=20))
    history = history_of_answer(read_lone_answer(tmp_path / "pasted.json"))

    assert [*circumstances(history, history.checkpoint(21))] == []
    assert "during savepoint 24 (4 min)" in " ".join(delayed_triggers(history))


def test_no_p_value_is_below_that_of_all_orders(tmp_path):
    """Of ten checkpoints, one order in 10! is as clear."""
    rows = [row(n, "COMPLETED", 100 * n, checkpointed_size=10**7 * n, state_size=10**9) for n in range(11, 21)]

    assert "(clear: p = 2.8e-07, 5.5e-07)" in told(tmp_path, listed(*rows, completed=20))


@pytest.mark.parametrize(
    ("written", "says"), [({"checkpointed_size": 12_000_000}, "12 MB written"), ({}, "bytes written unknown")]
)
def test_the_size_of_all_state_is_not_told_as_written(tmp_path, written, says):
    """Flink before 1.15 has no checkpointed_size."""
    text = told(tmp_path, listed(row(20, "COMPLETED", 350, state_size=8_000_000_000, **written), completed=20))

    assert f"took 350 ms, with 8 GB of state ({says})." in text


@pytest.mark.parametrize(
    ("written", "says"), [(3 * 10**9, ": they write 3 GB, the others 400 MB (medians)."), (5 * 10**8, ".")]
)
def test_slow_checkpoints_that_write_a_multiple_are_said_to(tmp_path, written, says):
    rows = [
        row(n, "COMPLETED", 20_000 if n in (13, 17) else 5_000 + n, state_size=10**10, checkpointed_size=4 * 10**8)
        for n in range(11, 21)
    ]
    slow = [own | {"checkpointed_size": written} if own["id"] in (13, 17) else own for own in rows]

    assert f"2 of 10 completed ones are slow (over 7.5 s){says}" in told(tmp_path, listed(*slow, completed=20)).replace(
        "))", ")"
    )


def test_times_after_the_year_9999(tmp_path):
    assert "9999-12-31 23:59:59" in told(
        tmp_path, listed(row(1, "FAILED", 5, trigger_timestamp=10**16, failure_message="x"))
    )


def test_none_has_completed_lately_and_which_vertex_did_not_acknowledge(tmp_path):
    counts = {"num_subtasks": 8, "end_to_end_duration": 1700}
    tasks = {"aa": counts | {"num_acknowledged_subtasks": 8}, "cc": counts | {"num_acknowledged_subtasks": 7}}
    late = [row(n, "FAILED", 50_000, failure_message="Checkpoint expired before completing.") for n in (5, 6, 7)]
    done = [row(n, "COMPLETED", 1800) for n in (2, 3, 4)]

    text = told(tmp_path, listed(*done, *late[:-1], late[-1] | {"tasks": tasks}, completed=17, longest=1800))

    assert text.startswith(
        "No checkpoint has completed since 2023-11-14 22:17:21: 3.8 min to the last moment in the answer. 3 checkpoints failed"
    )
    assert "Not acknowledged in full by cc (7 of 8)." in text
    assert "Before that, none of the 3 completed ones is slow" in text


def test_one_under_way_is_told_without_statistics(tmp_path):
    pending = row(8, "IN_PROGRESS", 540_000, num_acknowledged_subtasks=20, latest_ack_timestamp=1_700_001_020_000)
    text = told(
        tmp_path, listed(*[row(n, "COMPLETED", 2200) for n in range(2, 8)], pending, completed=20, longest=2200)
    )

    assert (
        "Checkpoint 8 (barriers not known) was still in progress at the end of what was read. 20 of 24 subtasks had acknowledged, "
        "the last 9 min after" in text
    )


def test_a_checkpoint_that_fails_after_all_have_acknowledged(tmp_path):
    """No task is to blame: the JobManager could not write its metadata, or its entry for a recovery."""
    failed = row(8, "FAILED", 59_000, failure_message="Failure to finalize checkpoint.", num_acknowledged_subtasks=24)
    rows = [row(n, "COMPLETED", 2200) for n in range(2, 8)]

    def text(**fields):
        return told(
            tmp_path, listed(*rows, failed | {"latest_ack_timestamp": failed["trigger_timestamp"] + 3000} | fields)
        )

    assert "All 24 subtasks had acknowledged after 3 s: what failed is the JobManager, which writes _metadata" in text()
    assert "what failed is the JobManager" not in text(num_acknowledged_subtasks=23)


def test_one_under_way_has_lasted_until_the_answers(tmp_path):
    """Flink's duration of a pending checkpoint is that of its last acknowledgement."""
    now_ms = SNAPSHOT.answers[OF_JOB]["now"]
    pending = row(999, "IN_PROGRESS", 40, trigger_timestamp=now_ms - 90_000)
    answers = SNAPSHOT.answers | {f"{OF_JOB}/checkpoints": OVERVIEW | {"history": [pending, *OVERVIEW["history"]]}}

    found = history_of(replace(SNAPSHOT, answers=answers)).checkpoint(999)

    assert found.end_to_end_duration == 90_000


@pytest.mark.parametrize(("duration", "passed"), [(318_000, ", 5.3 min after the trigger"), (1500, ""), (None, "")])
def test_the_time_that_a_subtask_has_not_acknowledged(tmp_path, duration, passed):
    """Flink's duration may end with the last acknowledgement; then it tells nothing of the others."""
    done = {"index": 0, "status": "completed", "end_to_end_duration": 1500}
    answer = {"id": 88, "status": "IN_PROGRESS", "end_to_end_duration": duration}
    text = told(tmp_path, json.dumps(answer | {"subtasks": [done, {"index": 1, "status": "pending_or_failed"}]}))

    assert f"Not acknowledged: subtask 1{passed}. The last that acknowledged" in text


def test_a_vertex_pasted_in_part_counts_as_flink_does(tmp_path):
    rows = [{"index": i, "status": "completed", "end_to_end_duration": 900 + i} for i in range(2)]
    answer = {"id": 113, "status": "COMPLETED", "num_subtasks": 24, "num_acknowledged_subtasks": 23, "subtasks": rows}
    text = told(tmp_path, json.dumps(answer))

    assert (
        "Checkpoint 113: 23 of 24 subtasks acknowledged; 2 of them are in it. The last of these was subtask 1" in text
    )
    assert "The other one after 900 ms" in text
    assert "2 of 2 subtasks acknowledged. The last was" in told(tmp_path, json.dumps(answer | {"num_subtasks": 2}))


def test_nothing_is_claimed_of_numbers_that_contradict_each_other(tmp_path):
    """More in flight than was written in all; a failure later than its duration; sums that are no vertices."""
    sizes = {"checkpointed_size": 400_000, "state_size": 1_400_000, "persisted_data": 1_400_000}
    failed = row(8, "FAILED", 2000, failure_message="Checkpoint expired before completing.")
    failed["failure_timestamp"] = failed["trigger_timestamp"] + 600_000
    text = told(tmp_path, listed(row(9, "COMPLETED", 2000, **sizes), failed, completed=1))

    assert "In-flight data" not in text
    assert "0 B of state" not in text
    assert "Checkpoint 8 (barriers not known) was given up after 10 min" in text
    possible = listed(row(9, "COMPLETED", 2000, **sizes | {"persisted_data": 400_000}))
    assert "In-flight data that barriers overtook (persisted_data) is 100 %" in told(tmp_path, possible)
    counted = row(9, "COMPLETED", 2345, tasks={"total": 4, "pending": 0})
    assert "Checkpoint 9 (barriers not known) took 2.3 s" in told(tmp_path, json.dumps(counted))


def test_messages_of_exceptions_their_causes_and_how_often(tmp_path):
    trace = "org.x.FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold.\n\tat a.b\nCaused by: y.IOException: disk is full"
    entries = [
        {"exceptionName": "x", "stacktrace": trace, "timestamp": n * 660_000, "taskName": f"map ({n}/3)"}
        for n in (3, 2, 1)
    ]

    text = told(tmp_path, json.dumps({"exceptionHistory": {"entries": entries, "truncated": True}}))

    assert (
        "At least 3 failures of the job, 11 min apart on average. The last of map (3/3): org.x.FlinkRuntimeException: Exceeded checkpoint "
        "tolerable failure threshold; Caused by: y.IOException: disk is full." in text
    )
    old = {"root-exception": trace, "all-exceptions": []}
    assert "1 failure of the job. The last: org.x.FlinkRuntimeException: Exceeded" in told(tmp_path, json.dumps(old))
    none = {"root-exception": None, "all-exceptions": []}
    assert "0 failures of the job. It has no checkpoints" in told(tmp_path, json.dumps(none))


def test_the_latest_failure_of_each_kind(tmp_path):
    threshold = "x.FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold."
    heartbeat = "j.TimeoutException: Heartbeat of TaskManager with id {} timed out."
    traces = [heartbeat.format("10.0.3.7:1-f3"), threshold, heartbeat.format("10.0.3.8:2-a1"), threshold]
    entries = [{"stacktrace": trace, "timestamp": 9 - n, "taskName": f"map ({n}/4)"} for n, trace in enumerate(traces)]

    assert (
        "The last of map (0/4): j.TimeoutException: Heartbeat of TaskManager with id 10.0.3.7:1-f3 timed out. The last of another kind (2) "
        "of map (1/4): x.FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold. It has no checkpoints"
    ) in told(tmp_path, json.dumps({"exceptionHistory": {"entries": entries}}))


def test_an_older_failure_beside_the_latest_is_told(tmp_path):
    """Flink lists failures of the same time in one entry: the first of them is the cause more often than the one it names."""
    first = {
        "stacktrace": "java.lang.OutOfMemoryError: Direct buffer memory",
        "timestamp": 800,
        "taskName": "agg (1/8)",
    }
    entry = {"stacktrace": "x.RemoteTransportException: closed", "timestamp": 1000, "taskName": "join (3/8)"}

    def text(**fields):
        return told(tmp_path, json.dumps({"exceptionHistory": {"entries": [entry | fields]}}))

    assert (
        "The last of join (3/8): x.RemoteTransportException: closed. Flink lists one more with it, 200 ms before it (perhaps its cause) of "
        "agg (1/8): java.lang.OutOfMemoryError: Direct buffer memory." in text(concurrentExceptions=[first])
    )
    assert "200 ms after it of agg" in text(concurrentExceptions=[first | {"timestamp": 1200}])
    assert "one more" not in text(concurrentExceptions=[])


def test_what_a_configuration_means(tmp_path):
    """A pause longer than the interval decides; storage of the JobManager, and switches that are off, have limits."""
    config = {
        "mode": "exactly_once",
        "interval": 10_000,
        "timeout": 600_000,
        "min_pause": 600_000,
        "checkpoint_storage": "JobManagerCheckpointStorage",
        "checkpoints_after_tasks_finish": False,
    }
    text = told(tmp_path, json.dumps(config))

    assert "The pause voids the interval: the next one begins 10 min after the end of the one before." in text
    assert "one fails if a state of a subtask is larger than 5 MB" in text
    assert "Once a task has finished, no checkpoint is taken any more." in text
    other = told(tmp_path, json.dumps(config | {"min_pause": 0, "checkpoints_after_tasks_finish": True}))
    assert "voids" not in other
    assert "no checkpoint is taken" not in other
    timeout = config | {
        "unaligned_checkpoints": True,
        "aligned_checkpoint_timeout": 500,
        "tolerable_failed_checkpoints": 2,
    }
    text = told(tmp_path, json.dumps(timeout))
    assert "timeout 10 min, aligned until 500 ms after the trigger, then unaligned." in text
    assert "Of checkpoints that fail in a row number 3 fails the job." in text
    at_once = told(
        tmp_path, json.dumps(timeout | {"aligned_checkpoint_timeout": 0, "tolerable_failed_checkpoints": 2**31 - 1})
    )
    assert "timeout 10 min, unaligned." in at_once
    assert "in a row" not in at_once


def test_counts_of_more_checkpoints_than_the_history_has(tmp_path):
    """A history of none, or of ten, says little about how often checkpoints fail or take long; Flink's own counts do."""
    took = {"min": 800, "max": 598_000, "avg": 61_000, "p50": 2100.0, "p90": 205_000.0, "p99": 580_000.0}
    answer = {
        "counts": {"restored": 0, "total": 1450, "in_progress": 0, "completed": 1391, "failed": 59},
        "history": [],
        "latest": {},
    }
    text = told(tmp_path, json.dumps(answer | {"summary": {"end_to_end_duration": took}}))

    assert (
        "Of all 1391 completed ones half took up to 2.1 s, one in ten 3.4 min or more, and the longest 10 min." in text
    )
    assert (
        "Of 1450 checkpoints that Flink has counted since the JobMaster of the job began 59 failed; the answer lists 0."
        in text
    )
    contradiction = answer | {"counts": answer["counts"] | {"total": 5}, "summary": {"end_to_end_duration": took}}
    assert "half took" not in told(tmp_path, json.dumps(contradiction))
    assert "half took" not in told(
        tmp_path, json.dumps(answer | {"summary": {"end_to_end_duration": took | {"p90": "NaN"}}})
    )
    assert "completed ones half" not in told(
        tmp_path, listed(*[row(n, "COMPLETED", 2200) for n in (1, 2)], completed=2)
    )


def test_of_two_answers_in_a_file_it_is_said_that_the_first_is_read(tmp_path):
    two = json.dumps({"jid": "a", "name": "job", "vertices": [], "state": "RUNNING"})

    assert ", followed by more JSON: what is whole before that is read. The job 'job'" in told(
        tmp_path, f"{two}\n{two}\n"
    )


def test_text_of_the_web_ui_is_refused_with_what_to_save(tmp_path):
    (tmp_path / "ui.txt").write_text(
        "ID\tStatus\tTrigger Time\tLatest Acknowledgement\tEnd to End Duration\n77\tCOMPLETED\t14:21:08\t14:21:12\t4s\n"
    )

    assert is_real(str(tmp_path / "ui.txt"))
    with pytest.raises(RecordingError, match="is text of Flink's web UI, which rounds: save what it shows by curl"):
        explain_real_job(JobPlace([tmp_path / "ui.txt"]))


def test_what_needs_more_than_one_answer_says_so(tmp_path):
    (tmp_path / "pasted.json").write_text(json.dumps(OVERVIEW))

    with pytest.raises(
        RecordingError, match="is one answer of Flink, to /jobs/JOB/checkpoints: `ckptsim explain` says what it tells"
    ):
        read_source([tmp_path / "pasted.json"])


@pytest.mark.parametrize(
    "text", ["{}", '{"format": 1, "checkpoints": {"counts": {}, "history": []}}', "[1]", '{"a": ', "no json"]
)
def test_other_files_are_no_lone_answers(tmp_path, text):
    (tmp_path / "other").write_text(text)

    assert read_lone_answer(tmp_path / "other") is None


def test_an_error_of_a_reader_of_messages_is_not_taken_for_a_source_without_scenario(monkeypatch):
    def refuse(remarks, listener):
        raise RecordingError("the listener failed")

    monkeypatch.setattr("sim.app.verbs.explain.report_remarks", refuse)

    with pytest.raises(RecordingError, match="the listener failed"):
        explain_source(read_source([DATA / "rest" / "pressed.zip"]))

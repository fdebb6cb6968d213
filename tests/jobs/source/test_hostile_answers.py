"""Whatever an endpoint answers, and whatever a log says: a scenario that loads, or one line that says why there is none."""

import copy
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sim.jobs.infer.log import infer_log
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.reading import to_log_recording, to_recording
from sim.jobs.source.job_log import JobLog, LogCheckpoint
from sim.jobs.source.recorded_job import RecordingError, checkpoints_table
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from tests.places import REST

SNAPSHOTS = [read_saved(REST / f"{name}.zip") for name in ("pressed", "keeping-up")]
ODD = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1,
        7,
        2**31,
        2**63 - 1,
        10**30,
        -(10**30),
        0.5,
        float("nan"),
        float("inf"),
        "",
        "NaN",
        "x: [",
        "-5",
        "1e308",
        "9" * 50,
        "RUNNING",
        "FAILED",
        "UNKNOWN",
        [],
        [None],
        [[]],
        {},
        {"id": 1},
        "\n#\x00\x1b",
        "ß" * 3000,
    ]
)


def places(value, path=()):
    """The path of every part of a JSON document."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def damaged(document, path, value):
    if not path:
        return value
    document = copy.copy(document)
    document[path[0]] = damaged(document[path[0]], path[1:], value)
    return document


def runs(inference):
    return loads(inference.text, "imported")


@given(data=st.data())
def test_answers_with_anything_anywhere(data):
    """One to three values of all answers and samples are something else."""
    snapshot = data.draw(st.sampled_from(SNAPSHOTS))
    answers, samples = dict(snapshot.answers), {time_ms: dict(sample) for time_ms, sample in snapshot.samples.items()}
    for _ in range(data.draw(st.integers(1, 3))):
        tables = [answers, *samples.values()] if data.draw(st.booleans()) else [answers]
        table = data.draw(st.sampled_from(tables))
        path = data.draw(st.sampled_from(sorted(table)))
        table[path] = damaged(table[path], data.draw(st.sampled_from(list(places(table[path])))), data.draw(ODD))
    try:
        changed = RestSnapshot("test", snapshot.job, answers, samples)
        assert runs(infer_scenario(changed)).scenarios
        assert checkpoints_table(to_recording(changed).checkpoints.list) is not None
    except RecordingError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message
    assert len(message) < 2000


NUMBERS = st.one_of(st.integers(-1, 10**6), st.sampled_from([0, 1, 10**9, 10**13, 10**15]))


STATUS = st.sampled_from(["COMPLETED", "FAILED", "IN_PROGRESS"])


@example(rows=[(0, 0, 0, "COMPLETED"), (1, 0, 0, "COMPLETED"), (2, 0, 0, "COMPLETED")], vertices={})
@given(
    rows=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, STATUS), min_size=1, max_size=8),
    # a scenario refuses channels without end
    vertices=st.dictionaries(st.text(max_size=60), st.integers(1, 900), max_size=5),
)
def test_logs_with_any_numbers(rows, vertices):
    """Triggers, durations and sizes of any order and size."""
    log = JobLog("x.log", "0" * 32, vertices=vertices)
    for number, (trigger, took, size, status) in enumerate(rows, 1):
        done = {"status": status, "state_size": size, "end_to_end_duration": took, "reason": "expired"}
        log.checkpoints[number] = LogCheckpoint(number, trigger, trigger, **done)
    try:
        assert runs(infer_log(log)).scenarios
        assert checkpoints_table(to_log_recording(log).checkpoints.list) is not None
    except RecordingError as error:
        message = str(error)
    except ScenarioError as error:  # twelve days of checkpoints every other millisecond
        message = str(error)
        assert "at most 100000000 are kept" in message
    else:
        message = ""
    assert "\n" not in message


@pytest.mark.parametrize("name", ["interval", "timeout"])
def test_times_that_flink_does_not_take(name):
    """Are no times of Flink's: one line, and no scenario that does not load."""
    snapshot = SNAPSHOTS[0]
    path = f"/jobs/{snapshot.job}/checkpoints/config"
    changed = replace(snapshot, answers={**snapshot.answers, path: snapshot.answers[path] | {name: 9}})
    with pytest.raises(RecordingError, match=f"{name} is 9 ms; Flink takes 10 ms or more"):
        infer_scenario(changed)

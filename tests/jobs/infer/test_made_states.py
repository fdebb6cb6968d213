"""State of made jobs: what their checkpoints refer to and write is known, so every number of the scenario is."""

import math

import pytest

from sim.jobs.infer.state import backend_of, infer_state
from tests.jobs.infer.made_jobs import MB, MadeJob, checkpoint, comment_of, drafted, subtask
from tests.jobs.infer.test_edges_counted import flow, vertex

VERTICES = [vertex("src"), vertex("count", "src", parallelism=2)]
RATE = 100.0  # records/s


def inferred(
    histories, config=(), options=(), *, vertices=VERTICES, read=RATE, size=1000.0, every_ms=5000, name="count"
):
    """``histories``: of each subtask of `name` (size, written) or a size, checkpoint by checkpoint, from number 2 on."""
    rows = [[own if isinstance(own, tuple) else (own, own) for own in column] for column in histories]
    points = [
        checkpoint(number, every_ms, **{name: [subtask(i, *row[k]) for i, row in enumerate(rows)]})
        for k, number in enumerate(range(2, 2 + len(rows[0])))
    ]
    job = MadeJob(vertices, points, {"state_backend": "hashmap"} | dict(config), options)
    draft = drafted(job)
    infer_state(draft, job, {row.name: flow(read, size=size) for row in vertices})
    return draft


def state(draft, name="count"):
    return draft.document["job"][name].get("state")


@pytest.mark.parametrize(
    ("named", "option", "backend"),
    [
        ("hashmap", None, "hashmap"),
        (None, "rocksdb", "rocksdb"),
        (None, None, "hashmap"),
        ("EmbeddedRocksDBStateBackend", None, "rocksdb"),
        ("HashMapStateBackend", "rocksdb", "hashmap"),
        ("my.own.Backend", None, "other"),
    ],
)
def test_the_backend_is_what_the_job_says_before_its_cluster(named, option, backend):
    assert backend == backend_of(
        MadeJob([], config={"state_backend": named}, options={"state.backend.type": option} if option else {})
    )
    assert backend_of(MadeJob([])) == "hashmap"


def test_a_backend_that_is_unknown_is_taken_as_rocksdb_and_named():
    draft = inferred([[3 * MB] * 2, [2 * MB] * 2], {"state_backend": "my.own.Backend"})

    assert state(draft)["backend"] == "rocksdb"
    assert draft.not_modelled == ["the state backend of 'count': simulated as rocksdb"]
    assert comment_of(draft, "job.count.state.backend") == "my.own.Backend in the configuration"


@pytest.mark.parametrize("lacks", ["records", "bytes"])
def test_without_records_the_share_that_is_rewritten_is_asked_for(lacks):
    unmeasured = {"read": math.nan} if lacks == "records" else {"size": math.nan}
    draft = inferred([[10 * MB, 12 * MB], [10 * MB, 11 * MB]], {"state_backend": "rocksdb"}, **unmeasured)

    assert state(draft)["update"] == "10 %"
    assert "count: Which share of the records updates an entry?" in draft.unknown


@pytest.mark.parametrize(
    ("every_ms", "written"), [(30_000, {"materialize": "30 s", "storage": "memory"}), (0, {"storage": "memory"})]
)
def test_a_changelog_that_each_checkpoint_writes_again_lies_in_memory(every_ms, written):
    """Beside 5 MB that were materialised each checkpoint writes all of the rest."""
    config = {"state_changelog_enabled": True, "changelog_periodic_materialization_interval": every_ms}
    draft = inferred([[(MB * size, MB * (size - 5)) for size in (10, 11, 12)]] * 2, config)

    assert written == {key: value for key, value in state(draft)["changelog"].items() if key != "change-copy"}
    assert comment_of(draft, "job.count.state.changelog.storage") == "each checkpoint writes the whole log again"


def rises(count, step, begin=20 * MB, noise=0):
    """Sizes of two subtasks that grow along a line."""
    return [[begin // 2 + step // 2 * k + noise * (k % 2) for k in range(count)]] * 2


@pytest.mark.parametrize(
    ("sizes", "read", "grows"),
    [
        (rises(5, 10 * MB), RATE, True),
        (rises(4, 10 * MB), RATE, False),
        (rises(6, 10 * MB), 0.0, False),
        (rises(6, 10 * MB), math.nan, False),
        (rises(6, MB // 2, begin=25 * MB), RATE, False),
        (rises(6, MB, begin=25 * MB), RATE, True),
        (rises(6, 200, begin=1000), 1e6, False),
        ([[10 * MB, 40 * MB, 12 * MB, 42 * MB, 11 * MB, 43 * MB]] * 2, RATE, False),
    ],
)
def test_growth_needs_a_line_that_rises_by_a_tenth_and_records_that_make_it(sizes, read, grows):
    """It takes five checkpoints, and a byte for each record."""
    assert grows == ("growth" in state(inferred(sizes, read=read)))


@pytest.mark.parametrize(
    ("option", "ttl", "is_open"),
    [("2 h", "2 h", False), ("0 ms", None, False), ("often", None, True), (None, None, True)],
)
def test_the_time_to_live_is_that_of_the_configuration(option, ttl, is_open):
    draft = inferred(rises(6, 10 * MB), options={"table.exec.state.ttl": option} if option else {})

    assert (ttl, is_open) == (state(draft).get("ttl"), any("expire" in question for question in draft.unknown))

"""State of made jobs: what their checkpoints refer to and write is known, so every number of the scenario is."""

import math

import pytest

from sim.advice.questions import unknowns
from sim.jobs.infer.draft import Draft
from sim.jobs.infer.file_history import acknowledged, files_of
from sim.jobs.infer.state import backend_of, infer_flushes, infer_state
from sim.model.schema.text import write
from sim.model.units import parse_size
from tests.jobs.infer.made_jobs import MB, MadeJob, checkpoint, comment_of, drafted, flow, subtask, vertex

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
    flows = {row.name: flow(read, size=size) for row in vertices}
    job = MadeJob(vertices, points, {"state_backend": "hashmap"} | dict(config), options, flows=flows)
    draft = drafted(job)
    infer_state(draft, job)
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


@pytest.mark.parametrize(
    ("size", "written", "incremental"), [(3 * MB, 3 * MB, False), (3 * MB, 1 * MB, True), (15_000, 15_000, True)]
)
def test_increments_that_are_configured_may_not_be_in_effect(size, written, incremental):
    """Small state is inline, so it is written each time; files that no checkpoint shares are full checkpoints."""
    own = [subtask(i, size, written) for i in (0, 1)]
    points = [
        checkpoint(number, count=own).model_copy(update={"state_size": 2 * size, "checkpointed_size": 2 * written})
        for number in range(2, 8)
    ]
    options = {"state.backend.incremental": "true", "state.backend.type": "rocksdb"}
    job = MadeJob(VERTICES, points, options=options, flows={row.name: flow(RATE, size=1000) for row in VERTICES})
    draft = drafted(job)
    infer_state(draft, job)

    assert draft.document["checkpoint"]["incremental"] is incremental
    assert ("value" in state(draft)) == incremental, "bytes of full checkpoints tell nothing of entries"


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
    ("option", "storage", "is_open"), [("filesystem", "filesystem", False), (None, "memory", True)]
)
def test_the_changelog_is_where_the_configuration_says(option, storage, is_open):
    """Beside 5 MB that were materialised each checkpoint writes all of the rest."""
    config = {"state_changelog_enabled": True, "changelog_periodic_materialization_interval": 30_000}
    options = {"state.changelog.storage": option} if option else {}
    draft = inferred([[(MB * size, MB * (size - 5)) for size in (10, 11, 12)]] * 2, config, options)

    assert state(draft)["changelog"] == {"materialize": "30 s", "storage": storage}
    assert is_open == ("count: Where is the changelog (state.changelog.storage)?" in draft.unknown)


def rises(count, step, begin=20 * MB):
    """Sizes of two subtasks that grow along a line."""
    return [[begin // 2 + step // 2 * k for k in range(count)]] * 2


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


def levels(count=18, noise=1000):
    """A megabyte more with each checkpoint, of which nothing is left over from the tenth on; half of it in each subtask."""
    return [[MB * min(number - 1, 10) // 2 + noise * (number % 2) for number in range(2, 2 + count)]] * 2


@pytest.mark.parametrize(
    ("sizes", "option", "ttl", "is_open"),
    [
        (rises(6, 10 * MB), "2 h", "2 h", False),
        (rises(6, 10 * MB), "0 ms", None, False),
        (rises(6, 10 * MB), "often", None, True),
        (rises(6, 10 * MB), None, None, True),
        (levels(), "7200000", "2 h", False),
        (levels(), "0 ms", None, True),
        (levels(noise=0), "2 h", None, False),
    ],
)
def test_the_time_to_live_is_that_of_the_configuration(sizes, option, ttl, is_open):
    """It counts, unless sizes are the same to the byte; 0 is never, which leaves a question where they level off."""
    draft = inferred(sizes, options={"table.exec.state.ttl": option} if option else {})

    assert (ttl, is_open) == (state(draft).get("ttl"), any("expire" in question for question in draft.unknown))


def test_state_that_levels_off_with_some_noise_asks_why():
    """It stays, or is as large as the records of a time to live are many: both can be tried."""
    draft = inferred(levels())

    assert state(draft).keys() == {"size"}
    assert parse_size(state(draft)["size"]) == pytest.approx(10 * MB, rel=0.01)
    question = "Has it reached its full number of keys, or do keys expire (StateTtlConfig)?"
    assert f"count: {question}" in draft.unknown
    text = write({"version": 1} | draft.document, "?", draft.comments)
    assert [row.question for row in unknowns(text) if row.path[-1] == "size"] == [question]


def test_a_rise_that_slows_down_is_no_line():
    """Fewer and fewer keys are new: it begins at the last size, and asks.  One that goes on begins before its first checkpoint."""
    bends = [round(20e6 * (1 - math.exp(-k / 6))) for k in range(1, 19)]
    assert state(inferred([bends] * 2)) == {"size": f"{2 * bends[-1]} B"}
    grows = state(inferred([[MB * k for k in range(1, 19)]] * 2))
    assert (grows["size"], grows["growth"]) == ("0 B", "4 kB")


def test_a_flush_that_is_faster_has_a_rate_of_its_own():
    """100 MB of state, 10 MB per checkpoint in 20 ms, merged in every fourth: at 1, 5, 9 ..."""
    sizes = {number: 110 * MB + (number - 1) % 4 * 10 * MB for number in range(1, 18)}
    points = [checkpoint(number, map=[subtask(0, size, sync=20)]) for number, size in sizes.items()]
    section = Draft().vertex("map")
    infer_flushes(section, points, "map", {0: files_of(acknowledged(points, "map")[0])})

    assert section.values["state"]["lsm"] == {"flush": "500 MB/s", "freeze": "0 s"}

"""State of made jobs: what their checkpoints refer to and write is known, so every number of the scenario is."""

import math

import pytest

from sim.jobs.infer.state import backend_of, infer_state
from sim.model.units import parse_duration, parse_size
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


def test_keyed_state_is_what_all_subtasks_refer_to():
    """The last checkpoint counts, and a much smaller first one is named."""
    draft = inferred([[3 * MB, 4 * MB], [2 * MB, 1 * MB]])

    assert state(draft) == {"size": "5 MB"}
    assert comment_of(draft, "job.count.state.size") == (
        "state of checkpoint 3, the last known, in 2 subtasks, 1,000,000 to 4,000,000 bytes each"
    )
    grown = inferred([[2 * MB, 4 * MB], [2 * MB, 1 * MB]])
    assert comment_of(grown, "job.count.state.size").endswith("each; 4,000,000 bytes in checkpoint 2")


@pytest.mark.parametrize(("before", "named"), [(91, False), (90, True), (112, True), (111, False)])
def test_a_first_size_that_differs_by_a_tenth_is_named(before, named):
    """In the end it is 100."""
    assert named == (" bytes in checkpoint 2" in comment_of(inferred([[before, 100], [0, 0]]), "job.count.state.size"))


def test_state_that_is_not_behind_a_hash_is_that_of_an_operator():
    """The median of its subtasks."""
    vertices = [vertex("src"), vertex("map", "src", ship="REBALANCE", parallelism=3)]
    draft = inferred([[100], [300], [200]], vertices=vertices, name="map")

    assert (state(draft, "map") or {}, draft.document["job"]["map"]["snapshot"]) == ({}, {"operator-state": "200 B"})


def test_in_flight_data_is_no_state():
    point = checkpoint(2, count=[subtask(0, 500, persisted=9000), subtask(1, 700, persisted=100)])
    job = MadeJob(VERTICES, [point], {"state_backend": "hashmap"})
    draft = drafted(job)
    infer_state(draft, job, {row.name: flow(RATE) for row in VERTICES})

    assert state(draft) == {"size": "1.2 kB"}


def test_a_vertex_without_state_has_none_and_one_that_nothing_tells_of_is_asked_for():
    draft = inferred([[0], [0]])

    assert (state(draft), draft.unknown) == (None, ["src: How much state does it keep?"])
    assert (
        comment_of(draft, "job.src")
        == "UNKNOWN: How much state does it keep? Assumed: none, because no completed checkpoint tells."
    )


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
    assert draft.not_modelled == ["the state backend of 'count': taken as rocksdb"]
    assert comment_of(draft, "job.count.state.backend") == "my.own.Backend in the configuration"


def test_files_that_were_never_merged_may_hold_overwritten_entries():
    """The smallest checkpoint counts; 4 MB are written in 5 s by 500 records of 1 kB, so each must rewrite 8 kB."""
    rocksdb = {"state_backend": "rocksdb"}
    draft = inferred([[(10 * MB, 2 * MB), (12 * MB, 2 * MB)], [(10 * MB, 2 * MB), (11 * MB, 2 * MB)]], rocksdb)

    assert tuple(state(draft)[key] for key in ("size", "update", "value")) == ("20 MB", "100 %", "8 kB")
    assert comment_of(draft, "job.count.state.size").endswith(
        "each; no files were merged: some of it may be overwritten"
    )
    assert comment_of(draft, "job.count.state.update") == (
        "median of 4,000,000 bytes written per checkpoint / (500 records between two x 8000 bytes)"
    )
    assert "Assumed: as small as it can be: every record rewrites one." in comment_of(draft, "job.count.state.value")
    few = inferred([[(10 * MB, 50_000), (12 * MB, 50_000)], [(10 * MB, 50_000), (11 * MB, 50_000)]], rocksdb)
    assert (state(few)["update"], state(few)["value"]) == ("20 %", "1 kB")
    assert "Assumed: as large as the records it reads." in comment_of(few, "job.count.state.value")


@pytest.mark.parametrize("lacks", ["records", "bytes"])
def test_without_records_the_share_that_is_rewritten_is_asked_for(lacks):
    unmeasured = {"read": math.nan} if lacks == "records" else {"size": math.nan}
    draft = inferred([[10 * MB, 12 * MB], [10 * MB, 11 * MB]], {"state_backend": "rocksdb"}, **unmeasured)

    assert state(draft)["update"] == "10 %"
    assert "count: Which share of the records rewrites an entry?" in draft.unknown


MERGED = [100, 110, 120, 130, 110, 120, 130, 140, 110, 120, 130, 140, 110]


def test_files_are_the_state_right_after_they_were_merged():
    """Two subtasks of 100 MB each, which write 10 MB per checkpoint and are merged in every fourth."""
    draft = inferred([[MB * size for size in MERGED]] * 2, {"state_backend": "rocksdb"})
    rewritten = -200 * math.log(1 - 0.1)  # MB: a key that is written twice is in an increment once

    assert state(draft)["size"] == "200 MB"
    assert "checkpoint 14 after files were merged, without what was written since (every 4 checkpoints)" in comment_of(
        draft, "job.count.state.size"
    )
    assert comment_of(draft, "job.count.state.update").startswith(
        "files grow by 20,000,000 bytes from one checkpoint to the next (median) /"
    )
    assert math.ceil(rewritten * MB / 500) == parse_size(state(draft)["value"])
    assert "growth" not in state(draft)


@pytest.mark.parametrize(
    ("config", "options", "written", "incremental"),
    [
        ({"state_backend": "rocksdb"}, {}, 0.89, True),
        ({"state_backend": "rocksdb"}, {}, 0.9, None),
        ({"state_backend": "rocksdb"}, {"execution.checkpointing.incremental": "true"}, 1, True),
        ({"state_backend": "rocksdb"}, {"state.backend.incremental": "true"}, 1, True),
        ({"state_backend": "rocksdb"}, {"execution.checkpointing.incremental": "false"}, 1, None),
        ({}, {}, 0.5, None),
    ],
)
def test_checkpoints_are_incremental_if_configured_or_if_less_is_written_than_referred_to(
    config, options, written, incremental
):
    """A tenth less; a heap has no increments."""
    draft = inferred([[(1000, round(1000 * written))] * 2] * 2, config, options)

    assert incremental == draft.document.get("checkpoint", {}).get("incremental")


@pytest.mark.parametrize(
    ("every_ms", "written"), [(30_000, {"materialize": "30 s"}), (0, "on"), (-1, "on"), (None, "on")]
)
def test_a_changelog_is_materialised_as_often_as_the_job_says(every_ms, written):
    """Under it RocksDB is not seen to flush: that is asked for."""
    config = {"state_changelog_enabled": True, "changelog_periodic_materialization_interval": every_ms}
    rises = [[(MB * size, MB) for size in (10, 11, 12)]] * 2
    heap, rocksdb = inferred(rises, config), inferred(rises, config | {"state_backend": "rocksdb"})

    assert written == state(heap)["changelog"] == state(rocksdb)["changelog"]
    assert "lsm" not in state(heap)
    assert state(rocksdb)["lsm"]["flush"] == "200 MB/s"
    assert "count: How fast does RocksDB write its memtables to disk?" in rocksdb.unknown


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


def test_state_on_a_line_grows_with_every_record():
    """10 MB in 5 s by 500 records are 20 kB for each; one interval before the first checkpoint it was 10 MB less."""
    draft = inferred(rises(6, 10 * MB))

    assert (state(draft)["size"], state(draft)["growth"]) == ("10 MB", "20 kB")
    assert comment_of(draft, "job.count.state.size") == (
        "one interval before checkpoint 2, the first known with 20,000,000 bytes: it grows from there"
    )
    assert comment_of(draft, "job.count.state.growth") == (
        "2,000,000 bytes/s (6 checkpoints on a line, to 70,000,000 bytes in 7) / 100.0 records/s; "
        "UNKNOWN: When do its keys expire (StateTtlConfig: ttl)? Assumed: never. It has grown for 25 s, as long as it is known."
    )
    assert state(inferred(rises(6, 10 * MB, begin=5 * MB)))["size"] == "0 B", "there is no state below nothing"


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


def test_state_that_has_come_to_its_level_begins_there():
    """10 MB in 5 s up to 60 MB; from then on as many keys leave as come, with some noise: 30 s they live."""
    sizes = [[MB * min(5 * k, 30) + 20_000 * (k % 2) * (k > 6) for k in range(1, 14)]] * 2
    draft = inferred(sizes)

    assert pytest.approx(parse_size(state(draft)["size"]), rel=0.001) == 60 * MB
    assert pytest.approx(parse_size(state(draft)["growth"]), rel=0.001) == 20_000
    assert parse_duration(state(draft)["ttl"]) == 30 * 10**9
    assert state(draft)["limit"] == state(draft)["size"]
    same = inferred([[MB * min(5 * k, 30) for k in range(1, 14)]] * 2)
    assert (state(same)["size"], state(same)["limit"], state(same).get("ttl")) == ("60 MB", "60 MB", None)
    assert comment_of(same, "job.count.state.limit") == (
        "the same to the byte in the last 8 checkpoints while 100 records/s came: all keys are there"
    )


@pytest.mark.parametrize(("equal", "all_there"), [(5, True), (4, False)])
def test_five_sizes_that_are_the_same_to_the_byte_are_all_keys(equal, all_there):
    sizes = [
        [MB * 5 * k for k in range(1, 7)] + [30 * MB + 10_000 * (k % 2 + 1) for k in range(4)] + [30 * MB] * equal
    ] * 2

    assert all_there != ("ttl" in state(inferred(sizes)))


def test_state_whose_keys_are_ever_less_new_is_asked_for_its_end():
    """Towards 100 MB, with a time constant of 40 s; the scenario begins an interval before the history."""
    sizes = [[round(50 * MB * (1 - math.exp(-5 * k / 40))) for k in range(1, 16)]] * 2
    draft = inferred(sizes)

    assert pytest.approx(parse_size(state(draft)["limit"]), rel=0.02) == 100 * MB
    assert pytest.approx(parse_size(state(draft)["growth"]), rel=0.05) == 100 * MB / 40 / RATE
    assert parse_size(state(draft)["size"]) < MB
    assert "count: How large is it when all of its keys have come?" in draft.unknown
    assert (
        comment_of(draft, "job.count.state.size")
        == "one interval before checkpoint 2, the first known: it grows from there"
    )

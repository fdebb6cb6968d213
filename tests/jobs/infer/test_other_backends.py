"""What an import of a job says of other state backends, held to the same job on those."""

from pathlib import Path
from statistics import median

import pytest

from sim.jobs.infer.cores import usual_checkpoints
from sim.jobs.infer.flows import Flow, Flows
from sim.jobs.infer.heap import LOCAL_MS
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.infer.state import entry_bytes
from sim.jobs.infer.storage import infer_storage
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from sim.model.schema.writer import write
from sim.model.units import parse_byte_rate, parse_duration
from sim.runtime.simulate import simulate
from tests.jobs.infer.made_jobs import MB, MadeJob, checkpoint, comment_of, drafted, subtask
from tests.jobs.infer.test_edges_counted import vertex

DATA = Path(__file__).parents[2] / "data" / "backends"
PROFILE = 'job."profile+out-writer"'
ROCKSDB = (f"{PROFILE}.state.backend=rocksdb", "checkpoint.incremental=true")
QUESTION = "Which share of the records rewrites an entry that is there?"
ENTRY = f"{PROFILE}.state.value=664 B"  # what its author knows: 3,319,968 bytes / 5,000 keys


def inferred(name):
    return infer_scenario(read_saved(DATA / f"{name}.zip"))


def predicted(name, *overrides):
    """The subtasks of Profile, and the checkpoints."""
    found = inferred(name)
    text = write(found.document, found.question, found.comments)
    result = simulate(loads(text, overrides=["run.duration=2 min", *overrides]).scenarios[0], check=False)
    return result.subtasks[result.subtasks["vertex"] == "profile+out-writer"], result.checkpoints


def observed_bytes(name):
    return median(point.checkpointed_size for point in usual_checkpoints(RestJob(read_saved(DATA / f"{name}.zip"))))


def test_a_snapshot_of_the_heap_leaves_open_what_is_rewritten():
    """3 MB of constant size and 1,000 records/s: nothing that changes the size, and all of it may be rewritten."""
    found = inferred("S-heap")
    state = found.document["job"]["profile+out-writer"]["state"]
    remark = " ".join(found.comments["job.profile+out-writer.state.update"].split())

    assert state["update"] == "100 %"
    assert [question.removeprefix("profile+out-writer: ") for question in found.unknown[:2]] == [
        QUESTION,
        "How large is an entry of its state: its size / the number of its keys?",
    ]
    assert remark.startswith("UNKNOWN: ")
    assert "between 0 % and 100 %" in remark
    assert (
        "With RocksDB and incremental checkpoints one writes some 2.48 MB at 100 %, 425 kB at 10 %, new keys only at 0 %"
        in remark
    )


@pytest.mark.parametrize("size", ["S", "M"])
def test_rocksdb_writes_what_is_rewritten(size):
    """Without `update:` the increments of a state of constant size were 26 kB."""
    _, checkpoints = predicted(f"{size}-heap", *ROCKSDB, ENTRY)

    assert checkpoints["checkpointed_size"].median() == pytest.approx(observed_bytes(f"{size}-rocksdb"), rel=0.2)


def test_a_changelog_writes_each_change():
    _, checkpoints = predicted("M-heap", f"{PROFILE}.state.changelog={{materialize: 30 s}}", ENTRY)

    assert checkpoints["checkpointed_size"].median() == pytest.approx(observed_bytes("M-heapcl"), rel=0.05)


def test_pauses_of_rocksdb_do_not_stay_on_the_heap():
    """Its sync takes 40 ms in the median and 98 ms at times; that of the heap none."""
    stays, _ = predicted("S-rocksdb")
    goes, _ = predicted("S-rocksdb", f"{PROFILE}.state.backend=hashmap")

    assert pytest.approx(stays["sync_duration"].median(), rel=0.15) == 40
    assert goes["sync_duration"].max() == 0
    assert pytest.approx(goes["async_duration"].median(), rel=0.4) == 22


def serialized(took_ms, size=40 * MB, folder="file:///ck", load=0.0):
    """Two subtasks that write alike, 1 kB per entry."""
    points = [checkpoint(number, count=[subtask(i, size, async_=took_ms) for i in range(2)]) for number in range(2, 8)]
    vertices = [vertex("src"), vertex("count", "src", parallelism=2)]
    job = MadeJob(vertices, points, {"state_backend": "hashmap"}, {"execution.checkpointing.dir": folder})
    draft = drafted(job)
    draft.document |= {"cluster": {"cores": 2, "hosts": 1}}
    draft.document["job"]["count"]["state"] = {"size": f"{2 * size} B", "value": "1 kB"}
    draft.core_load = load
    infer_storage(draft, job)
    storage, state = draft.document["storage"], draft.document["job"]["count"]["state"]
    rate = parse_byte_rate(state["serialize"]) / MB if "serialize" in state else None
    return parse_duration(storage["file-latency"]) / 10**6, rate, draft


def test_what_a_core_serialises_is_no_latency_of_a_file():
    """40 MB in 200 ms: a core needs 109 of them by itself, 218 beside another."""
    latency_ms, rate, draft = serialized(200)

    assert (latency_ms, rate) == (LOCAL_MS, 200)
    assert "How long does it take to write a small file?" in draft.unknown
    assert comment_of(draft, "job.count.state.serialize").startswith(
        "median of 12 asynchronous phases: 40,000,000 bytes in 200 ms: work of a core"
    )


def test_threads_that_want_the_cores_make_serialising_slower():
    """Three busy threads beside both snapshots on two cores: two and a half times as slow as alone."""
    assert serialized(200, load=1.5)[1] == 500


def test_a_remote_file_may_take_long_a_local_one_does_not():
    """1 MB in 300 ms.  A core needs 3 ms for that; no local disk takes the rest."""
    far_ms, far_rate, _ = serialized(300, MB, "s3://bucket/ck")
    near_ms, near_rate, _ = serialized(300, MB)

    assert (far_ms, far_rate) == (290, None)
    assert (LOCAL_MS, pytest.approx(1 / 0.3, rel=0.01)) == (near_ms, near_rate)


@pytest.mark.parametrize(
    ("size", "read", "expected"), [("1 MB", 500, 500), ("0 B", 500, 500), ("100 B", 500, 100), ("1 MB", 0.5, 1000)]
)
def test_an_entry_is_as_large_as_a_record_that_is_counted(size, read, expected):
    """Fewer than 5 bytes are no record of Flink's network stack: the source did not count them."""
    counted = Flow(1000, records_in=100, bytes_in=100 * read)

    assert expected == entry_bytes({"size": size}, Flows((counted,), "samples"))

"""Storage of made jobs: its latency and bandwidth are known, so what asynchronous phases tell of them is."""

import pytest

from sim.jobs.infer import storage as room
from sim.jobs.infer.storage import (
    MIN_PHASES_FOR_LINE,
    AsyncPhase,
    infer_storage,
    infer_uploads,
    inline_bytes,
    line_through,
)
from sim.jobs.source.rest_answers import VertexDetails
from sim.model.units import parse_byte_rate
from tests.jobs.infer.made_jobs import MB, MadeJob, checkpoint, comment_of, drafted, subtask
from tests.jobs.infer.test_edges_counted import vertex

VERTICES = [vertex("src"), vertex("count", "src", parallelism=2), vertex("sink", "count", parallelism=2)]
LATENCY_MS, PER_MS = 30, 100_000  # 100 MB/s


def phase_ms(size, latency_ms=LATENCY_MS, per_ms=PER_MS):
    return round(latency_ms + size / per_ms)


def inferred(own, config=(), options=(), sections=(), count=6, *, placement="isolated"):
    """``own(number)``: vertex -> its subtasks in that checkpoint."""
    points = [checkpoint(number, 1000, **own(number)) for number in range(2, 2 + count)]
    job = MadeJob(VERTICES, points, {"state_backend": "hashmap", "interval": 1000} | dict(config), options)
    draft = drafted(job)
    draft.document |= {"cluster": {"placement": placement}}
    for name, section in dict(sections).items():
        draft.document["job"][name] |= section
    infer_storage(draft, job)
    return draft


def written(size, **others):
    return subtask(0, size, async_=phase_ms(size), **others)


def on_a_line(number):
    return {"count": [written(MB * number), subtask(1, 3 * MB * number, async_=phase_ms(3 * MB * number))]}


def test_a_line_tells_both():
    """With the bytes between which it was drawn; nothing but late checkpoints shows the latency of metadata."""
    draft = inferred(on_a_line)

    assert draft.document["storage"] == {"bandwidth": "100 MB/s", "file-latency": "30 ms", "metadata-latency": "30 ms"}
    assert comment_of(draft, "storage.bandwidth").startswith(
        "line (Theil-Sen) through 12 asynchronous phases of 2,000,000 to 21,000,000 bytes in one stream; "
    )
    assert comment_of(draft, "storage.metadata-latency") == "as for any file: only late checkpoints show it"
    assert draft.unknown == []


def test_what_is_too_small_for_a_file_tells_nothing():
    """State of 20 kB travels with the acknowledgement; a byte more is a file."""
    small = {"count": [subtask(0, 20_480), subtask(1, 100, async_=900)]}

    draft = inferred(lambda number: small)
    assert draft.document["storage"] == {"bandwidth": "100 MB/s", "file-latency": "20 ms"}
    assert (draft.unknown) == [
        "How fast does checkpoint storage write one file, in bytes per second?",
        "How long does it take to write the smallest file?",
    ]
    assert comment_of(draft, "storage.file-latency").endswith("Assumed: 20 ms.")
    assert "bytes in 20 ms" in comment_of(
        inferred(lambda number: {"count": [subtask(0, 20_481)]}), "storage.file-latency"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 20_480),
        ({"state.backend.fs.memory-threshold": "1kb"}, 1024),
        ({"state.storage.fs.memory-threshold": "2kb"}, 2048),
        ({"state.storage.fs.memory-threshold": "2kb", "state.backend.fs.memory-threshold": "1kb"}, 2048),
        ({"execution.checkpointing.data-inline-threshold": "0", "state.storage.fs.memory-threshold": "2kb"}, 0),
        ({"execution.checkpointing.data-inline-threshold": "large"}, 20_480),
    ],
)
def test_the_newest_name_of_the_threshold_counts(options, expected):
    assert expected == inline_bytes(MadeJob([], options=options))


def test_late_checkpoints_tell_the_latency_of_metadata():
    """4 s late ones each end 26 ms before the next trigger, 6 ms of which the coordinator takes."""
    points = [checkpoint(2 + k, 1526, took_ms=1500, count=[subtask(0, 100)]) for k in range(5)]
    job = MadeJob(VERTICES, points, {"interval": 1000, "max_concurrent": 1})
    draft = drafted(job)
    infer_storage(draft, job)

    assert (draft.document["storage"]["file-latency"], draft.document["storage"]["metadata-latency"]) == (
        "20 ms",
        "20 ms",
    )
    assert comment_of(draft, "storage.metadata-latency").startswith("median of 4 gaps between the last acknowledgement")


@pytest.mark.parametrize(
    ("changes", "count", "known"),
    [
        ({}, 4, True),
        ({}, 3, False),
        ({"max_concurrent": 2}, 5, False),
        ({"min_pause": 10}, 5, False),
        ({"interval": 1500}, 5, False),
    ],
)
def test_metadata_shows_behind_three_late_checkpoints_alone(changes, count, known):
    """One as long as the interval is not late; a pause, or the next one beside it, hides the gap."""
    points = [checkpoint(2 + k, 1526, took_ms=1500) for k in range(count)]

    found = room._metadata(MadeJob(VERTICES, points, {"interval": 1000, "max_concurrent": 1} | changes))
    assert (20 if known else None) == found[0]


ALIKE = {"count": [subtask(0, 10 * MB, async_=130), subtask(1, 10 * MB, async_=130)]}


def test_where_all_write_alike_the_latency_of_metadata_stands_for_all():
    """10 MB in 130 ms, of which 20 ms are the latency: 90.9 MB/s.  Three latencies at most do not tell."""
    points = [checkpoint(2 + k, 1526, took_ms=1500, **ALIKE) for k in range(5)]
    short = [checkpoint(2 + k, 1526, took_ms=1500, count=[subtask(0, MB, async_=60)]) for k in range(5)]
    config = {"interval": 1000, "max_concurrent": 1}
    drafts = []
    for history in (points, short):
        job = MadeJob(VERTICES, history, config)
        drafts.append(drafted(job))
        infer_storage(drafts[-1], job)

    assert (drafts[0].document["storage"]["bandwidth"], drafts[0].document["storage"]["file-latency"]) == (
        "90.9 MB/s",
        "20 ms",
    )
    assert (
        comment_of(drafts[0], "storage.bandwidth")
        == "median of 10 asynchronous phases: 10,000,000 bytes in 130 ms; less the latency of the metadata"
    )
    assert drafts[1].document["storage"]["file-latency"] == "50 ms", "60 ms less 1 MB at 100 MB/s, as assumed"


def test_where_all_write_alike_one_that_was_faster_is_the_least_that_storage_can_do():
    """10 MB in 50 ms are 200 MB/s; the others then begin with 80 ms."""
    fast = {"count": [subtask(0, 10 * MB, async_=130), subtask(1, 10 * MB, async_=130), subtask(2, 10 * MB, async_=50)]}
    draft = inferred(lambda number: fast if number == 3 else ALIKE)

    assert (draft.document["storage"]["bandwidth"], draft.document["storage"]["file-latency"]) == ("200 MB/s", "80 ms")
    assert "subtasks write 10,000,000 to 10,000,000 bytes, and the time does not tell" in comment_of(
        draft, "storage.bandwidth"
    )
    assert comment_of(draft, "storage.bandwidth").endswith("one wrote 200,000,000 bytes/s.")


def test_a_rate_has_an_end():
    """A phase of no time would be faster than any storage."""
    assert room._rate(1e12) == "1 TB/s"
    assert room._rate(100_000.0) == "100 MB/s"


def test_a_changelog_waits_for_its_batch():
    """10 ms of each phase."""
    section = {"count": {"state": {"changelog": "on"}}}

    assert inferred(on_a_line, sections=section).document["storage"]["file-latency"] == "20 ms"


def test_tables_of_rocksdb_go_side_by_side():
    """Four streams: 400 MB in tables of 64 MiB are 100 MB in the longest."""
    section = {"count": {"state": {"backend": "rocksdb"}}}
    size = 100 * MB

    def own(number):
        return {"count": [subtask(0, size * number, async_=phase_ms(size * number / 4))]}

    draft = inferred(own, sections=section, count=10)
    assert pytest.approx(parse_byte_rate(draft.document["storage"]["bandwidth"]), rel=0.1) == 100 * MB


UNALIGNED = {"unaligned_checkpoints": True}


def test_unaligned_only_the_last_vertices_that_waited_for_nothing_count():
    """10 ms of alignment are no wait; all others end with the last barrier."""

    def own(number):
        waits = {"count": [subtask(0, MB * number, async_=900)]}
        return waits | {"sink": [written(MB * number, align=10), subtask(1, 3 * MB * number, async_=2000, align=11)]}

    draft = inferred(own, UNALIGNED, count=9)
    assert (draft.document["storage"]["bandwidth"], draft.document["storage"]["file-latency"]) == ("100 MB/s", "30 ms")
    assert "through 9 asynchronous phases" in comment_of(draft, "storage.bandwidth")


def test_unaligned_little_in_flight_beside_state_is_written_in_no_time():
    """Less than a tenth; with a tenth of it no phase counts where tasks share a file of channel state."""

    def own(share):
        return lambda number: {
            "sink": [subtask(0, MB * number, async_=phase_ms(MB * number), align=5, persisted=int(share * MB * number))]
        }

    alone, shared = (inferred(own(share), UNALIGNED, count=9, placement="spread") for share in (0.09, 0.1))
    assert "through 9 asynchronous phases" in comment_of(alone, "storage.bandwidth")
    assert "no completed checkpoint tells" in comment_of(shared, "storage.bandwidth")


def test_files_of_channel_state_tell_where_each_task_has_its_own():
    """The longer of both streams counts: 5 MB in flight beside 1 MB of state, of barriers that came together."""

    def own(number):
        return {"count": [subtask(0, MB * number, async_=phase_ms(5 * MB * number), persisted=5 * MB * number)]}

    isolated = inferred(own, UNALIGNED, count=9)
    assert (isolated.document["storage"]["bandwidth"], isolated.document["storage"]["file-latency"]) == (
        "100 MB/s",
        "30 ms",
    )
    timeout = inferred(own, UNALIGNED | {"aligned_checkpoint_timeout": 100}, count=9)
    assert "no completed checkpoint tells" in comment_of(timeout, "storage.bandwidth")


def test_eight_phases_are_a_line():
    phases = [AsyncPhase(float(MB * k), float(phase_ms(MB * k))) for k in range(1, MIN_PHASES_FOR_LINE + 1)]

    assert MIN_PHASES_FOR_LINE == 8
    assert (line_through(phases[:-1]), line_through(phases).is_told) == (None, True)
    assert line_through([AsyncPhase(1.0, 5.0)] * 7 + [AsyncPhase(1.49, 5.0)]) is None
    assert line_through([AsyncPhase(1.0, 5.0)] * 7 + [AsyncPhase(1.5, 5.0)]) is not None


def uploads(own, config=(), options=(), hosts="ab"):
    """What vertices do in their asynchronous phase beside writing files."""
    points = [checkpoint(number, **own(number)) for number in range(2, 7)]
    details = {
        name: VertexDetails.model_validate(
            {"subtasks": [{"subtask": i, "taskmanager-id": host} for i, host in enumerate(hosts)]}
        )
        for name in ("src", "count", "sink")
    }
    job = MadeJob(VERTICES, points, dict(config), options, details=details)
    draft = drafted(job)
    infer_uploads(draft, job)
    return {name: section.get("snapshot", {}).get("async") for name, section in draft.document["job"].items()}, draft


@pytest.mark.parametrize(("took_ms", "works"), [(61, True), (60, False), (500, True)])
def test_a_long_phase_without_a_file_is_work(took_ms, works):
    """Sixty milliseconds are noise."""
    found, draft = uploads(lambda number: {"sink": [subtask(i, 100, async_=took_ms) for i in (0, 1)]})

    assert (f"{took_ms} ms" if works else None) == found["sink"]
    if works:
        assert (
            comment_of(draft, "job.sink.snapshot.async")
            == "median asynchronous duration of 10 snapshots whose state is too small for a file"
        )


def test_a_phase_that_writes_a_file_is_no_work():
    assert uploads(lambda number: {"sink": [subtask(0, MB, async_=900)]})[0] == {
        "src": None,
        "count": None,
        "sink": None,
    }


def test_unaligned_the_wait_for_the_last_barrier_is_no_work():
    """800 ms of 900, on its own task manager; 100 ms are left, of which all is work."""

    def own(number):
        return {"sink": [subtask(0, 100, async_=900, align=800), subtask(1, 100, async_=900, align=800)]}

    assert uploads(own, UNALIGNED)[0]["sink"] == "900 ms"
    short = {"sink": [subtask(i, 100, async_=850, align=800) for i in (0, 1)]}
    assert uploads(lambda number: short, UNALIGNED)[0]["sink"] is None


def test_unaligned_a_shared_file_takes_no_longer_than_others_take_for_as_much():
    """`count` writes 1 MB of state in 100 ms; 2 MB in flight take 200 ms at most, so 300 ms of `sink` are work, and 150 ms are none."""

    def own(took_ms):
        return lambda number: {
            "count": [subtask(0, MB, async_=100), subtask(1, MB, async_=100)],
            "sink": [subtask(i, 100, async_=took_ms, persisted=2 * MB) for i in (0, 1)],
        }

    assert uploads(own(300), UNALIGNED)[0]["sink"] == "300 ms"
    assert uploads(own(250), UNALIGNED)[0]["sink"] is None
    assert uploads(own(900), UNALIGNED | {"aligned_checkpoint_timeout": 100})[0]["sink"] is None


def test_a_file_of_twice_the_bytes_takes_twice_as_long_at_most():
    """Smaller ones bound it in proportion, larger ones by their own time; without bytes there is no file."""
    from sim.jobs.infer.storage import _storage_ms

    assert _storage_ms(2 * MB, [(100.0, MB, "a")]) == 200.0
    assert _storage_ms(MB, [(100.0, 2 * MB, "a")]) == 100.0
    assert _storage_ms(2 * MB, [(100.0, MB, "a"), (150.0, 3 * MB, "b"), (400.0, 9 * MB, "c")]) == 150.0
    assert _storage_ms(0, [(100.0, MB, "a")]) == 0.0
    assert float("inf") == _storage_ms(1, [])

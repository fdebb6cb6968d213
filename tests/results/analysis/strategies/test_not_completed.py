"""Checkpoints that did not complete, and those that upload everything: rows of their own, and no part in others."""

import math

import pytest

from sim.results.not_completed import not_completed
from sim.results.side_by_side import table, texts
from sim.results.summary import summarize
from sim.results.verdict import verdict
from tests.results.analysis.runs_by_hand import EDGES, Made, line

# Checkpoints that did not complete: rows of their own, with bounds, and with no part in those of the others.


def expiring():
    """Two that complete, two that expire: behind data, and in their upload."""
    run = (
        Made()
        .checkpoint(0, 100)
        .subtask("sink", ack=100, start_delay=40)
        .part("behind data", "sink", 40)
        .part("upload", "sink", 60)
    )
    run.checkpoint(1000, 100).subtask("sink", ack=100, start_delay=40).part("behind data", "sink", 40).part(
        "upload", "sink", 60
    )
    run.checkpoint(2000, 500, status="FAILED", failure="CHECKPOINT_EXPIRED").part("behind data", "sink", 500)
    run.checkpoint(3000, 700, status="FAILED", failure="CHECKPOINT_EXPIRED").subtask(
        "sink", ack=9000, start_delay=600, alignment=90
    )
    run.part("behind data", "sink", 700)
    return run.load(busy=(0, 0, 1))


def test_those_that_expire_have_a_row_with_bounds():
    """Their start delay is longer than the time behind data that was seen; what came later was never reached."""
    run = expiring()
    header, rows = texts([line("aligned", run, not_completed=not_completed([run.tables()], [4000.0]))])
    own, expired = (dict(zip(header, row, strict=True)) for row in rows)

    assert (own["completed (n)"], own["start delay"], own["alignment"]) == ("2, 2 failed", "40 ms", "0 ms"), "not mixed"
    assert (expired["strategy"], expired["p50"], expired["max"]) == ("aligned: 2 expired", "> 600 ms", "> 700 ms")
    assert (expired["start delay"], expired["async"], expired["throughput"]) == ("> 600 ms", "0 ms", "-")


def test_the_end_cuts_off_any_checkpoint():
    """It says something only of one that had taken long; so does a restart."""
    quick = Made().checkpoint(0, 100).checkpoint(900, -1, status="IN_PROGRESS").load(busy=(0, 0, 0)).tables()
    slow = Made().checkpoint(0, 100).checkpoint(900, -1, status="IN_PROGRESS")
    slow.checkpoint(950, 5000, status="FAILED", failure="JOB_FAILOVER_REGION").part("upload", "sink", 5000)

    found = not_completed([slow.load(busy=(0, 0, 0)).tables()], [8_900.0])

    assert not_completed([quick], [1_000.0]) == ()
    assert [(row.fate, row.longest_ms, row.cut_off) for row in found] == [
        ("under way at the end", 8_000.0, ""),
        ("interrupted", 5_000.0, "async"),
    ]
    assert found[0].parts_ms == {}, "its path is not over"
    assert {"fate": "interrupted", "count": 1, "async_ms": 5_000.0}.items() <= found[1].row.items()


# The first checkpoint that uploads everything: what it is, and that it counts nowhere else.


def uploading(*, state=2_000, written=60):
    """A first checkpoint of 11.8 s that writes everything, and three later ones of 330 ms."""
    run = Made().checkpoint(0, 11_800, size=state, state=state).part("upload", "sink", 11_700)
    for k in range(1, 4):
        run.checkpoint(1000 * k, 330 + k, size=written, state=state).part("upload", "sink", 300)
    return run.load(busy=(0.1, 0.2, 0.3))


def test_it_is_a_row_and_a_sentence():
    """Sentences are about checkpoints that exist, none about a mean of both."""
    run = uploading(state=200_000_000_000, written=600_000_000)
    row = line("it", run, first=summarize([run.tables()], EDGES, of_first_uploads=True), sinks=("sink",))
    header, rows = texts([row])

    assert [row[0] for row in rows] == ["it", "it: first upload"]
    assert [row[header.index("completed (n)")] for row in rows] == ["3", "1"]
    assert [row[header.index("p50")] for row in rows] == ["332 ms", "12 s"]
    assert [row[header.index("written")] for row in rows] == ["600 MB", "200 GB"]
    assert [row[header.index("throughput (sink)")] for row in rows] == ["100/s", "-"]
    assert verdict([row]) == (
        "Writing 600 MB takes 300 ms of the 332 ms of checkpoint 3: storage decides, not the barriers."
        " Checkpoint 1 uploads everything, 200 GB in 12 s: it has its own row, and everything but commits is about later ones."
    )


@pytest.mark.parametrize(
    ("behind_data_ms", "end"),
    [
        ((0, 0), "not the barriers"),
        ((500, 0), " 1 of the slowest 2 checkpoints wait longer for barriers than for files"),
        ((500, 600), " 2 of the slowest 2 checkpoints wait longer for barriers than for files"),
    ],
)
def test_storage_decides_only_if_it_decides_the_slowest_quarter_as_well(behind_data_ms, end):
    run = Made()
    for k in range(8):
        barriers_ms = behind_data_ms[k - 6] if k > 5 else 0
        run.checkpoint(1000 * k, 310 + barriers_ms + k, size=60)
        run.part("behind data", "sink", barriers_ms).part("upload", "sink", 300)
    found = verdict([line("it", run.load(busy=(0.1, 0.2, 0.3)), sinks=("sink",))])

    assert end in found
    assert ("not the barriers" in found) == (not any(behind_data_ms))


def test_a_mean_far_from_the_median_is_printed_with_it():
    """A compaction in four checkpoints; bytes per hour are those of the three intervals."""
    run = Made()
    for k, size in enumerate((10, 10, 10, 100)):
        run.checkpoint(1000 * k, 100, size=size * 10**6, state=10**9)
    rows = [line("it", run.load(busy=(0.1, 0.2, 0.3)), sinks=("sink",))]
    header, texts_of_rows = texts(rows)

    assert texts_of_rows[0][header.index("written")] == "median 10 MB, mean 32 MB"
    assert rows[0].summary.written_bytes_per_hour == 120e6 * 3600 / 3


def test_percentiles_stand_with_their_sample_only():
    """In texts and in numbers: of nine the median and the longest, of ten the 90th, of a hundred the 99th."""
    lines = []
    for count in (9, 10, 100):
        run = Made()
        for k in range(count):
            run.checkpoint(1000 * k, 1000 + k)
        lines.append(line(str(count), run.load(busy=(0, 0, 0))))
    header, rows = texts(lines)
    numbers = table(lines)

    assert header[2:6] == ["p50", "p90", "p99", "max"]
    assert [row[3:5] for row in rows] == [["-", "-"], ["1 s", "-"], ["1.1 s", "1.1 s"]]
    assert "p99" not in texts(lines[:2])[0]
    assert "p90" not in texts(lines[:1])[0]
    assert [math.isnan(value) for value in numbers["end_to_end_p99_ms"]] == [True, True, False]
    assert list(numbers["end_to_end_p50_ms"]) == [1004, 1004.5, 1049.5]


def test_sources_that_fall_short_are_said():
    """Emitted of what is offered: by how much the backlog grows says what was due."""
    late = Made().load(
        busy=(1, 0, 0), records=(600.0, 600.0, 600.0), seconds=10, backlog=lambda second: 99_400 * second
    )
    lines = [
        line(name, run, sinks=("sink",), sources=("source",))
        for name, run in (("late", late), ("fine", Made().load(busy=(0, 0, 0))))
    ]
    header, rows = texts(lines)

    assert [row[header.index("emitted (source)")] for row in rows] == ["600/s of 100k/s", "-"]
    assert not [name for name in texts(lines[1:])[0] if name.startswith("emitted")]

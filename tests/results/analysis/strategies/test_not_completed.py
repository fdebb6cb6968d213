"""Checkpoints that did not complete: rows of their own, with bounds, and with no part in those of the others."""

from sim.results.not_completed import not_completed
from sim.results.side_by_side import texts
from tests.results.analysis.runs_by_hand import Made, line


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

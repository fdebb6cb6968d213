"""Jobs that finish, and checkpoints that end before their job: what a reader needs is when, and what it costs."""

import math

import pandas as pd
import pytest

from sim.results.end_of_job import finish, last_trigger_s
from sim.results.journal import EventType
from sim.results.side_by_side import StrategyRow
from sim.results.summary import summarize
from sim.results.verdict import verdict
from tests.places import DATA
from tests.results.analysis.runs_by_hand import EDGES, Made
from tests.scenarios import run_scenario


def ended(*late, seconds=10):
    """Checkpoints at 2 s and at the times of `late`, records for so many seconds."""
    run = Made()
    for at_s in (2, *late):
        run.checkpoint(1e3 * at_s, 40).part("upload", "sink", 40)
    tables = run.load(busy=(0.1, 0.1, 0.1), seconds=seconds).tables()
    tables["checkpoints"]["x_finalization"] = 10.0
    tables["tasks"]["x_finalCheckpoint"] = len(late) + 1 if late else -1
    return tables | {
        "recoveries": pd.DataFrame({"running": [], "failed": [], "replayed_records": [], "served_again": []})
    }


def line(name, tables, *, at_s=math.nan, committed=100.0, last_s=math.nan):
    found = None if math.isnan(at_s) else finish([tables], [at_s], committed)
    status = "RUNNING" if found is None else "FINISHED"
    return StrategyRow(
        name,
        (),
        "",
        status,
        summarize([tables], EDGES),
        until_s=at_s,
        finish=found,
        last_trigger_s=last_s,
        commits=True,
    )


def test_what_passes_after_the_last_record():
    waits, once, none = ended(12, 17), ended(10.1), ended()

    assert pytest.approx(finish([waits], [17.1], 0).idle_s) == 7.1
    assert counted(waits, 17.1) == (2, 3, 50.0)
    assert counted(once, 10.2) == (1, 2, 50.0)
    assert counted(none, 10.2)[:2] == (0, None)


def test_what_passes_after_the_last_sample_is_not_known():
    """Records came in the last second, which is not whole: any of its checkpoints may have been in front of them."""
    run = ended(10.1, 10.3)
    run["tasks"]["numRecordsIn"] += 30

    assert counted(run, 10.4) == (1, 3, 50.0)
    assert finish([run], [10.4], 0).idle_s == 0


def counted(tables, end_s):
    found = finish([tables], [end_s], 0)
    return found.checkpoints, found.final, found.final_ms


def test_the_verdict_says_when_the_job_finishes():
    """Under which strategy how much later, what holds its end, and who commits less."""
    lines = [
        line("flink", ended(10.1), at_s=10.2),
        line("naive", ended(12, 17), at_s=17.1),
        line("off", ended(), at_s=10.2, committed=90.0),
    ]

    assert verdict(lines).startswith(
        "The job finishes at 10 s with flink and off, and at 17 s with naive. "
        "With naive the job ends 7.1 s and 2 checkpoints after its last record. "
        "Checkpoint 2 (flink) is the final one and completes in 50 ms. "
        "Not compared: flink and naive, where the final checkpoint is one of few. With off no final checkpoint completes. "
        "Off commits 90 records of 100. "
    )
    assert verdict([lines[0]]).startswith(
        "The job finishes at 10 s. Checkpoint 2 (flink) is the final one and completes in 50 ms. Checkpoints take"
    )
    assert "; with runs on it does not. " in verdict([lines[0], line("runs on", ended())])


def test_more_than_four_strategies_are_counted():
    """A sentence is not a list."""
    lines = [line(name, ended(10.1), at_s=10.2) for name in "abcde"]

    assert verdict([*lines[:4], line("late", ended(), at_s=17.1)]).startswith(
        "The job finishes at 10 s with a, b, c and d, and at 17 s with late."
    )
    assert verdict([*lines, line("late", ended(), at_s=17.1)]).startswith(
        "The job finishes at 10 s with 5 strategies, and at 17 s with late."
    )


def test_checkpoints_that_end_before_their_job():
    """Not while one is under way."""
    quiet, pending = ended(4, seconds=60), ended(4, seconds=60)
    pending["checkpoints"]["status"] = "IN_PROGRESS"

    assert math.isnan(last_trigger_s([pending], [60.0], 2.0))
    lines = [line("flink", ended(4, 6)), line("off", quiet, last_s=4.0)]
    assert verdict(lines).startswith(
        "With off checkpoints stop before the job does: none is triggered after 4 s, and a failure restores that last one. "
        "Checkpoints of flink take"
    )
    assert "differ" not in verdict(lines), "a few checkpoints are no match for many"


def test_net_throughput_tells_strategies_apart():
    """Equal checkpoints, and a job that gets on with one of them: also after failures."""

    def failing(name, again):
        tables = ended()
        tables["recoveries"] = pd.DataFrame(
            {"running": [2e3], "failed": [1e3], "replayed_records": again, "served_again": again}
        )
        return line(name, tables)

    text = verdict([failing("slow", 500), failing("good", 0)])

    assert text.endswith("checkpoints take 40 ms with all strategies; good serves 100/s, slow 50/s.")
    assert pytest.approx(failing("slow", 500).summary.throughput_per_second) == 50


REPORT_14 = (DATA / "reports/br14/scenario.yaml").read_text()


@pytest.mark.parametrize(
    ("interval", "fault", "final"),
    [
        ("30 s", "", 3),  # triggered 40 ms after the end of data
        ("1 h", "", 2),  # at once, since none is under way
        ("39.999 s", "", None),  # its call reaches the source after the end of data, though it was triggered before
        ("30 s", 'faults: [{kill: "sink[0]", at: 43 s}]', 4),
        ("30 s", 'faults: [{kill: "sink[0]", at: 20 s}]', None),
    ],
)
def test_the_checkpoint_that_holds_the_end_is_named(interval, fault, final):
    """FLINK-25920: what happens between the end of data and the last checkpoint.  The journal decides, not samples."""
    text = REPORT_14.replace("interval: 30 s", f"interval: {interval}") + fault + "\n"
    result = run_scenario(text)
    found = finish([result.tables], [result.ended_ns / 1e9], 0)
    ended_ns = max(row.time_ns for row in result.journal if row.event_type is EventType.END_OF_DATA)
    completed = {row.checkpoint: row.time_ns for row in result.journal if row.event_type is EventType.COMPLETED}

    assert found.final in completed
    assert completed[found.final] > ended_ns
    assert found.final == max(completed)
    if final is not None:
        assert found.final == final

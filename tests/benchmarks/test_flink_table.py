"""What the comparison with a real Flink counts, prints, and says where there is none."""

import importlib.metadata
import re
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.flink import classes
from benchmarks.flink.experiments import EXPERIMENTS
from benchmarks.flink.measured import PER_MINUTE, measured
from benchmarks.flink.protocols import INTERRUPTIBLE, PROTOCOLS, UNALIGNED
from benchmarks.flink.report import decision, table_text
from benchmarks.flink.switch import imported, predict
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved

REST = Path(__file__).parent.parent / "data" / "rest"


@pytest.fixture(scope="module")
def pressed():
    return read_saved(REST / "pressed.zip")


def value(rows, quantity, vertex=""):
    return rows[(rows["quantity"] == quantity) & (rows["vertex"] == vertex)]["value"].median()


def row(protocol, quantity, vertex, predicted, observed):
    sides, spread = {"predicted": predicted, "observed": observed}, {"p10": 0.9, "p50": 1, "p90": 1.1}
    percentiles = {
        f"{side}_{name}": number * factor for side, number in sides.items() for name, factor in spread.items()
    }
    error = (predicted - observed) / observed if observed else float("nan")
    return {"protocol": protocol, "quantity": quantity, "vertex": vertex, **percentiles, "relative_error": error}


def test_a_saved_job_is_measured_from_a_moment_on(pressed):
    """Checkpoints triggered before are left out: nothing had settled."""
    job = RestJob(pressed)
    triggers = sorted(point.trigger_timestamp for point in job.checkpoints if not point.is_savepoint)
    rows, later = measured(job), measured(job, since_ms=triggers[1])

    assert value(rows, "completed") == value(later, "completed") + 1
    assert 60_000 * (len(triggers) - 1) / (triggers[-1] - triggers[0]) == pytest.approx(value(rows, PER_MINUTE))
    assert pytest.approx(value(rows, "numRecordsInPerSecond", "sink"), rel=0.05) == 2 / 3e-3  # two subtasks, 3 ms each


def test_protocols_are_predicted_from_one_import(pressed):
    """Each its own: in-flight data only where barriers overtake, and those who wait take longest."""
    text, scenario = imported(pressed)
    aligned, unaligned, timeout = (predict(scenario, protocol, watch_s=20, seeds=(1,)) for protocol in PROTOCOLS)
    took = [value(rows, "end_to_end_duration") for rows in (aligned, timeout, unaligned)]

    assert "UNKNOWN" in text
    assert sorted(took, reverse=True) == took
    assert value(aligned, "persisted_data") == 0 < value(timeout, "persisted_data") < value(unaligned, "persisted_data")


def test_what_an_author_knows_of_windows_is_predicted_with_and_without_interruptible_timers():
    """An import cannot tell what a timer does: the experiment says so, as a user would."""
    window = {"service": "1 us", "fan-out": 0.1, "window": {"tumbling": "4 s", "time": "event", "fire": "10 ms"}}
    text, scenario = imported(read_saved(REST / "keeping-up.zip"), {"join-customer": window})
    waits, passes = (predict(scenario, protocol, watch_s=60, seeds=(1,)) for protocol in (UNALIGNED, INTERRUPTIBLE))
    longest = [rows[rows["quantity"] == "end_to_end_duration"]["value"].max() for rows in (waits, passes)]

    assert "fire: 10 ms" in text
    assert longest[0] > 2 * longest[1]


def test_experiments_answer_for_vertices_that_they_have():
    """A window that fires for 2 s: keys of a subtask times what each takes."""
    experiment = EXPERIMENTS["window"]
    job = experiment.job

    assert job.keys // job.parallelism * job.fire == 2_000_000
    assert {"firing"} == set(experiment.answers)
    assert tuple(experiment.protocols[1:]) == (UNALIGNED, INTERRUPTIBLE)


def test_intervals_are_written_as_flink_reads_them():
    """Flink knows no '3.1 s'."""
    intervals = [experiment.options["execution.checkpointing.interval"] for experiment in EXPERIMENTS.values()]

    assert [text for text in intervals if not re.fullmatch(r"\d+ (s|ms)", text)] == []


def test_both_sides_name_the_same_things(pressed):
    """Else there would be rows without an error."""
    _, scenario = imported(pressed)
    observed = measured(RestJob(pressed))
    predictions = predict(scenario, PROTOCOLS[0], watch_s=20, seeds=(1,))
    names = set(zip(observed["quantity"], observed["vertex"], strict=True))

    assert names == set(zip(predictions["quantity"], predictions["vertex"], strict=True))


def test_the_table_reads_like_a_ticket():
    """Values with units, small differences of durations as what they are, nothing about sources or about nothing."""
    table = pd.DataFrame(
        [
            row("aligned", "end_to_end_duration", None, 2600.0, 2500.0),
            row("aligned", "start_delay", "source", 3.0, 5.0),
            row("aligned", "start_delay", "sink", 950.0, 930.0),
            row("aligned", "persisted_data", None, 0.0, 0.0),
            row("aligned", "numRecordsInPerSecond", "map", 900.0, 900.0),
            row("aligned", "numRecordsInPerSecond", "sink", 990.0, 1000.0),
            row("unaligned", "persisted_data", None, 6.6e6, 6e6),
        ]
    )
    head, rule, *lines = table_text(table, "aligned").splitlines()

    assert head.split() == [
        "protocol",
        "quantity",
        "vertex",
        "predicted",
        "(p10",
        "-",
        "p90)",
        "measured",
        "(p10",
        "-",
        "p90)",
        "error",
    ]
    assert set(rule) == {"-"}
    assert [" ".join(line.split()) for line in lines] == [
        "aligned (imported) end to end, p50 2.60 s (2.34 s - 2.86 s) 2.50 s (2.25 s - 2.75 s) +4.0%",
        "start delay sink 950 ms (855 ms - 1.04 s) 930 ms (837 ms - 1.02 s) < 60 ms",
        "throughput sink 990/s (891/s - 1,089/s) 1,000/s (900/s - 1,100/s) -1.0%",
        "",
        "unaligned in-flight data stored 6.60 MB (5.94 MB - 7.26 MB) 6.00 MB (5.40 MB - 6.60 MB) +10.0%",
    ]


def test_a_decision_names_both_sides_of_each_change():
    """What was measured under the first protocol and under the other, and what had been predicted for that."""
    table = pd.DataFrame(
        [
            row("aligned", "end_to_end_duration", None, 2600.0, 2500.0),
            row("aligned", PER_MINUTE, None, 22.0, 23.0),
            row("unaligned", "end_to_end_duration", None, 390.0, 380.0),
            row("unaligned", PER_MINUTE, None, 30.0, 30.0),
        ]
    )
    durations = "end to end, p50 2.50 s -> 380 ms (390 ms); p90 2.75 s -> 418 ms (429 ms)"
    expected = f"unaligned instead of aligned: {durations}; completed per minute 23.0 -> 30.0 (30.0)"

    assert expected == decision(table, "aligned")


def test_without_flink_one_line_says_what_to_install(monkeypatch):
    """Also without Java."""

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(classes.importlib.metadata, "distribution", missing)
    with pytest.raises(
        classes.MissingDependencyError, match=r"^a real Flink needs its libraries: pip install .*\[flink\]'$"
    ):
        classes.classpath()
    monkeypatch.setattr(classes, "find", lambda: None)
    with pytest.raises(classes.MissingDependencyError, match="Java 17"):
        classes.java()

"""What goes wrong and what is done about it, from the file to the model."""

import gzip

import pandas as pd
import pytest

from sim.model.faults import (
    Fault,
    FaultLaw,
    JobManagerDown,
    Kill,
    NetworkOutage,
    SlowTask,
    StorageOutage,
    TaskManagerLost,
    When,
)
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError

S = 1_000_000_000
BASE = """\
# What then?
job:
  a: {source: {rate: 1k/s, record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, service: 10 us, parallelism: 2}
checkpoint: {interval: 5 s}
cluster: {placement: isolated}
run: {duration: 60 s}
"""


def scenario(text, **options):
    study = loads(BASE + text, **options)
    return study.scenarios[0]


def faults(*lines, **options):
    return scenario("faults:\n" + "".join(f"- {{{line}}}\n" for line in lines), **options).faults


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ('kill: "b[1]"', Kill("b", 1)),
        ("kill: b", Kill("b")),
        ("kill: random-task", Kill()),
        ("kill: task-manager", TaskManagerLost()),
        ("task-manager: 2", TaskManagerLost(2)),
        ("task-manager: random, silent: true", TaskManagerLost(silent=True)),
        ("job-manager: down-for 30 s", JobManagerDown(30 * S)),
        ("storage: outage, lasts: 2 s", StorageOutage(2 * S)),
        ("network: 3, lasts: 2 s", NetworkOutage(2 * S, 3)),
        ('slow: "a[0]", factor: 5, lasts: 2 s', SlowTask("a", 5, 2 * S, 0)),
        ("slow: a, factor: 5", SlowTask("a", 5)),
    ],
)
def test_every_fault_has_its_line(line, target):
    assert (Fault(target, When((95 * S,))),) == faults(f"{line}, at: 95 s")


@pytest.mark.parametrize(
    ("every", "law"),
    [
        ("10 min", FaultLaw(600 * S)),
        ("{exponential: 1 h}", FaultLaw(3600 * S, "exponential")),
        ("{weibull: {mean: 2 h, shape: 0.7}}", FaultLaw(7200 * S, "weibull", shape=0.7)),
        ("{lognormal: {mean: 1 h, cv: 2}}", FaultLaw(3600 * S, "lognormal", cv=2.0)),
    ],
)
def test_faults_come_by_a_law(every, law):
    assert (Fault(Kill(), When(every=law)),) == faults(f"kill: random-task, every: {every}")


def test_a_trace_of_times_counts_from_its_earliest_row(tmp_path):
    """Rows are chosen by the value of another column, and sorted."""
    (tmp_path / "kills.csv").write_text("chk,kill_epoch_s\n10000,1627732319\n30000,1627732029\n10000,1627732019\n")
    line = "kill: task-manager, trace: kills.csv, column: kill_epoch_s, where: {chk: 10000}, at: 5 s"

    assert (Fault(TaskManagerLost(), When((5 * S, 305 * S))),) == faults(line, folder=tmp_path)


@pytest.mark.parametrize(("begin", "at_s"), [("0 s", (0, 10, 310)), ("10 s", (0, 300)), ("11 s", (299,)), ("1 h", ())])
def test_a_run_begins_within_a_trace_of_faults(tmp_path, begin, at_s):
    """Faults before it are over; a window without any is a world, too."""
    (tmp_path / "kills.csv").write_text("t\n1010\n1000\n1310\n")
    expected = (Fault(Kill("b"), When(tuple(at * S for at in at_s))),) if at_s else ()

    assert expected == faults(f"kill: b, trace: kills.csv, column: t, from: {begin}", folder=tmp_path)


def test_a_trace_of_times_between_faults_and_of_durations(tmp_path):
    """In the unit that is said; Parquet and compressed CSV alike."""
    rows = pd.DataFrame({"gap": [0, 1200, 600], "lasts": [500, 0, 250]})
    rows.to_parquet(tmp_path / "outages.parquet")
    with gzip.open(tmp_path / "outages.csv.gz", "wt") as file:
        rows.to_csv(file, index=False)
    line = "storage: outage, trace: {}, column: gap, between: true, unit: 1 ms, lasts-column: lasts"
    expected = (Fault(StorageOutage(S // 2), When((0,))), Fault(StorageOutage(S // 4), When((1800 * S // 1000,))))

    assert expected == faults(line.format("outages.parquet"), folder=tmp_path)
    assert expected == faults(line.format("outages.csv.gz"), folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t\n1\nsoon\n", "kills.csv:3: 'soon' is not a time: the other rows have seconds"),
        ("when\n1\n", "has no column 't'; it has when"),
        ("t\n", "has no faults in column 't'"),
    ],
)
def test_a_trace_that_cannot_be_read_says_why(tmp_path, text, message):
    (tmp_path / "kills.csv").write_text(text)

    with pytest.raises(ScenarioError, match=message):
        faults("kill: b, trace: kills.csv, column: t", folder=tmp_path)


def test_subtasks_and_task_managers_may_come_with_rescaling():
    """The highest index is that of the largest parallelism there is in the course of the run."""
    rescale = "rescale:\n- {at: 20 s, parallelism: {b: 4}}\n- {at: 40 s, parallelism: {b: 2}}\n"
    given = scenario(rescale + 'faults: [{kill: "b[3]", at: 25 s}, {task-manager: 5, at: 30 s}]\n').faults

    assert [Kill("b", 3), TaskManagerLost(5)] == [fault.what for fault in given]

    with pytest.raises(ScenarioError, match=r"'b' has 4 subtasks, counted from 0: there is no b\[4\]"):
        scenario(rescale + 'faults: [{kill: "b[4]", at: 25 s}]\n')

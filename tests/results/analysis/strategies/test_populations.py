"""Every column of results is computed over the population that it names: rows of other populations never change it."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.quantities import PLANNED_RESTARTS
from sim.model.schema.study import load
from sim.results.columns import Population, columns_of
from sim.results.consequences import Consequences, consequences, consequences_sentence, planned_restarts_table
from sim.results.not_completed import BarrierPath
from sim.results.restarts import longest_downtime_sentence, restarts_table
from sim.results.summary import Summary, summarize
from sim.runtime.simulate import simulate
from sim.studies.expectations import expectation
from tests.places import DATA
from tests.results.analysis.runs_by_hand import Made
from tests.scenarios import read_scenario, run_scenario

SCENARIO = """
version: 1
job:
  src:  {source: {rate: 400/s, record: 1 kB}, parallelism: 2}
  map:  {input: {src: hash}, service: 1 ms, state: {size: 4 MB}, parallelism: 2}
  sink: {input: {map: forward}, service: 1 ms, commit: {}, parallelism: 2}
checkpoint: {interval: 2 s, timeout: 10 s}
restart: {strategy: fixed-delay, delay: 500 ms}
faults: [{kill: "map[0]", at: 9 s}, {kill: "map[1]", at: 17 s}]
storage: {bandwidth: 100 MB/s, file-latency: 20 ms}
run: {duration: 40 s}
"""

TEXTS = {"failure", "standstill", "start_delay_vertex", "bottleneck", "most_backpressured", "unfinished"}
WARMUP_S = 3.0


def populations(kind):
    """Column -> its population."""
    return {name: column.population for name, column in columns_of(kind).items() if column.population is not None}


POPULATIONS = {
    **populations(Summary),
    **{f"{prefix}_{field.name}": Population.COMPLETED for prefix in ("path", "tail") for field in fields(BarrierPath)},
    **populations(Consequences),
}


def test_every_number_names_its_population():
    """Columns of texts follow those of numbers."""
    named = {*populations(Summary), *populations(Consequences)}
    numbers = {field.name for kind in (Summary, Consequences) for field in fields(kind)} - TEXTS - {"path", "tail"}

    assert numbers - named == set()


@pytest.fixture(scope="module")
def tables():
    """The tables of a run with two failures and a transactional sink."""
    return run_scenario(SCENARIO).tables


def row_of(tables):
    edges = [("src", "map"), ("map", "sink")]
    end_ms = 40_000.0
    cost = consequences([tables], [end_ms], warmup_ms=1e3 * WARMUP_S, committers=["sink"])
    return summarize([tables], edges, warmup_s=WARMUP_S).row() | {
        field.name: getattr(cost, field.name) for field in fields(cost)
    }


def with_rows(tables, name, rows):
    return tables | {name: pd.concat([tables[name], rows], ignore_index=True)}


def with_savepoints(tables, chance):
    """Completed, failed and pending savepoints, with their subtasks and paths."""
    found, source = dict(tables), tables["checkpoints"]
    for k in range(chance.integers(1, 5)):
        row = source[source["status"] == "COMPLETED"].sample(1, random_state=int(chance.integers(1 << 30)))
        number = int(row["id"].iloc[0])
        for name in ("subtasks", "path"):
            own = tables[name][tables[name]["id"] == number].assign(id=10_000 + k)
            found = with_rows(found, name, own)
        changed = {
            "id": 10_000 + k,
            "savepointFormat": "CANONICAL",
            "end_to_end_duration": float(chance.uniform(1, 60_000)),
            "checkpointed_size": int(chance.integers(1, 1 << 40)),
            "trigger_timestamp": float(chance.uniform(0, 40_000)),
            "status": str(chance.choice(["COMPLETED", "FAILED", "IN_PROGRESS"])),
        }
        found = with_rows(found, "checkpoints", row.assign(**changed))
    return found


def with_planned_restarts(tables, chance):
    """Rescales and new jobs, each after the failures before it were caught up with."""
    found = tables
    for kind in chance.choice(PLANNED_RESTARTS, chance.integers(1, 5)):
        at_ms = float(chance.uniform(30_000, 39_000))
        row = (
            tables["recoveries"]
            .tail(1)
            .assign(
                kind=kind,
                failed=at_ms,
                running=at_ms + chance.uniform(1, 500),
                caught_up=at_ms + chance.uniform(500, 900),
                replayed_records=int(chance.integers(0, 10**6)),
            )
        )
        found = with_rows(found, "recoveries", row)
    return found


def with_failed_checkpoints(tables, chance):
    """Expired ones and those under way at the end."""
    source = tables["checkpoints"]
    rows = source[source["status"] == "COMPLETED"].tail(chance.integers(1, 4))
    status = str(chance.choice(["FAILED", "IN_PROGRESS"]))
    return with_rows(
        tables, "checkpoints", rows.assign(id=rows["id"] + 20_000, status=status, end_to_end_duration=90_000.0)
    )


def with_repeated_commits(tables, chance):
    """Committed again after a restore: the output was visible before."""
    rows = tables["commits"].tail(chance.integers(1, 4))
    return with_rows(tables, "commits", rows.assign(again=True, visible_latency=1e6, records=10**9, lost_records=0))


ADDITIONS = {
    "savepoints": (with_savepoints, set()),
    "planned restarts": (with_planned_restarts, {Population.PLANNED, Population.RESTARTS, Population.AFTER_WARMUP}),
    "failed checkpoints": (with_failed_checkpoints, {Population.CHECKPOINTS}),
    "repeated commits": (with_repeated_commits, set()),
}
"""What is added -> (how, populations that it belongs to; throughput leaves out what any restart repeats)."""


@pytest.mark.parametrize("addition", ADDITIONS)
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_of_other_populations_change_nothing(tables, addition, seed):
    add, touched = ADDITIONS[addition]
    before, after = row_of(tables), row_of(add(tables, np.random.default_rng(seed)))
    held = [column for column, population in POPULATIONS.items() if population not in touched]

    changed = {column: (before[column], after[column]) for column in held if not same(before[column], after[column])}

    assert changed == {}


def same(a, b):
    return a == b or (a != a and b != b)


METRICS = (
    "checkpoints.completed",
    "checkpoints.failed",
    "checkpoints.end_to_end_duration.max",
    "checkpoints.checkpointed_size.sum",
)


@pytest.mark.parametrize("metric", METRICS)
def test_expectations_leave_savepoints_out(tables, metric):
    scenario = read_scenario(SCENARIO)
    plain, others = (
        SimpleNamespace(tables=own, scenario=scenario)
        for own in (tables, with_savepoints(tables, np.random.default_rng(3)))
    )
    expected = expectation(metric, "> 0 B" if "size" in metric else "> 0 s" if "duration" in metric else "> 0")

    assert expected.value([others]) == expected.value([plain])


def test_planned_restarts_change_their_own_columns(tables):
    """The property above would hold of columns that are never computed, too."""
    after = row_of(with_planned_restarts(tables, np.random.default_rng(1)))

    assert (row_of(tables)["planned_restarts"], row_of(tables)["failures"]) == (0, 2)
    assert after["planned_restarts"] >= 1
    assert after["planned_downtime_ms"] < 500 < after["downtime_ms"]


@pytest.fixture(scope="module")
def report_23():
    """FLINK-40379: task managers come back one by one, and a cooldown decides how often the job restarts for them."""
    scenarios = load(DATA / "reports/br23/scenario.yaml").scenarios
    return [simulate(scenario).tables for scenario in scenarios]


def test_a_cooldown_does_not_change_what_the_failure_costs(report_23):
    """Both settings meet the same failure, with the same downtime and replay; one restarts more often afterwards."""
    costs = [consequences([tables], [480_000.0]) for tables in report_23]

    assert [cost.failures for cost in costs] == [1, 1]
    assert costs[0].planned_restarts > costs[1].planned_restarts
    assert costs[0].downtime_ms == costs[1].downtime_ms > 30_000
    assert costs[0].replayed_records == costs[1].replayed_records > 18_000
    # those that differ little are not compared
    longer = replace(costs[1], disturbed_share=2 * costs[0].disturbed_share)
    sentence = consequences_sentence({"0 s": costs[0], "1 min": longer})
    assert "by 1 failure and 1 planned restart" in sentence
    assert "by 1 failure and 2 planned restarts" in sentence
    assert [row[1] for row in planned_restarts_table(dict(zip(["0 s", "1 min"], costs, strict=True))).rows] == [
        "2",
        "1",
    ]


def test_each_of_several_restarts_has_a_row():
    """Means over unlike failures hide that a lost TaskManager costs more than a killed task."""
    run = Made().tables()
    run["recoveries"] = pd.DataFrame(
        {
            "failed": [1e3, 9e3],
            "detected": [1e3, 9e3],
            "cause": ["killed", "task manager 1 lost"],
            "running": [2e3, 30e3],
            "caught_up": [2.5e3, -1.0],
            "restored_bytes": [5e6, 1e9],
            "recovered_bytes": [0.0, 3e6],
            "replayed_records": [10, 20],
        }
    )

    assert restarts_table({"aligned": [run]}).rows == [
        ["aligned", "1 s", "killed", "1 s", "5 MB", "0 B", "10", "1.5 s"],
        ["aligned", "9 s", "task manager 1 lost", "21 s", "1 GB", "3 MB", "20", "-"],
    ]
    run["recoveries"] = run["recoveries"][:1]
    assert restarts_table({"aligned": [run]}) is None


def test_a_restart_that_has_not_ended_is_not_the_longest_downtime():
    """How long it takes is not known: the sentence says that it is about those that ended."""
    run = Made().tables()
    phases = {name: [1e3, -1.0] for name in ("cancelled", "delayed", "deployed")} | {"detected": [1e3, 60e3]}
    run["recoveries"] = pd.DataFrame(
        {
            "failed": [1e3, 60e3],
            "cause": ["killed", "killed"],
            "kind": "task",
            **phases,
            "running": [3e3, -1.0],
            "restored_bytes": 0.0,
            "recovered_bytes": 7e6,
        }
    )

    assert longest_downtime_sentence({"aligned": [run]}) == (
        "The longest downtime that ended, 2 s (killed): 2 s until all of them run "
        "(7 MB of in-flight data are recovered, whose records are processed before)."
    )


def test_a_restart_that_fails_belongs_to_the_downtime():
    """Restores that fail while storage is away: the job is down from the first failure on, and its tasks fail as one."""
    run = Made().tables()
    times = {"failed": [100e3, 160e3, 160e3], "running": [-1.0, -1.0, 230e3], "caught_up": -1.0}
    phases = {name: [moment, -1.0, 161e3] for name, moment in (("detected", 101e3), ("cancelled", 101e3))}
    causes = ["killed", "restore: storage is down", "restore: storage is down"]
    sizes = {"restored_bytes": [0.0, 0.0, 9e6], "recovered_bytes": 0.0, "replayed_records": [500, 0, 7]}
    run["recoveries"] = pd.DataFrame(
        {
            "cause": causes,
            "kind": "task",
            "vertices": "read and map",
            "tasks": 2,
            **times,
            **phases,
            "delayed": [101e3, -1.0, 168e3],
            "deployed": [101e3, -1.0, 170e3],
            **sizes,
        }
    )

    assert longest_downtime_sentence({"aligned": [run]}) == (
        "The longest downtime, 2.2 min (killed; then restore: storage is down): 60 s in attempts that failed, "
        "1 s until it is detected, 7 s until the restart delay is over, 2 s until the new ones have slots and are deployed, "
        "60 s until all of them run (9 MB are read). "
        "Only 2 tasks restart, of read and map; the others run on, and no checkpoint is taken meanwhile."
    )
    run["recoveries"]["deployments"] = 3
    assert "1 s until it is detected, 9 s until the new ones have slots" in longest_downtime_sentence(
        {"aligned": [run]}
    )
    run["recoveries"] = run["recoveries"].assign(deployments=1, kind="task-manager")
    stabilizing = longest_downtime_sentence({"aligned": [run]}, stabilizing=["aligned"])
    assert "7 s until the restart delay and the wait for more slots (restart.stabilization) are over" in stabilizing
    assert [row[1:4] for row in restarts_table({"aligned": [run]}).rows] == [
        ["100 s", "killed", "2.2 min"],
        ["2.7 min", "restore: storage is down", "70 s"],
    ]

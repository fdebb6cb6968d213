"""A whole sweep on a Spark that runs its tasks here: which cells run, in how many jobs, what is watched, and how it ends."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.runtime.result import code_version
from sim.studies import cells
from sim.studies.sweeps import spark_rows as room
from sim.studies.sweeps import spark_task
from sim.studies.sweeps.spark_rows import ClusterError, rows_on
from tests.studies.sweeps.spark.conftest import Context, plan_of

pytestmark = pytest.mark.usefixtures("pyspark")

KERNEL = ("kernel.o", b"code")


@pytest.fixture
def plan(study):
    """The plan of so many cells of 7 ns, c0, c1, ..."""
    scenario = study.scenarios[0]
    short = replace(scenario, run=replace(scenario.run, duration_ns=7))
    return lambda count: plan_of([f"c{i}" for i in range(count)], short)


@pytest.fixture
def ran(monkeypatch):
    """(cell, check, attempt) of the cells that have run."""
    found = []

    def timed(own, *, check, attempt):
        found.append((own.id, check, attempt))
        return {"cell": own.id, "status": "ok", "cpu_s": 1.0}

    monkeypatch.setattr(cells, "timed", timed)
    monkeypatch.setattr(cells, "warm", lambda kernel: None)
    monkeypatch.setattr(room, "compiled_kernel", lambda: KERNEL)
    monkeypatch.setattr(room, "TICK_S", 0.01)
    return found


def test_every_cell_has_a_row_and_whoever_watches_sees_how_far_it_is(ran, plan):
    spark, seen = Context(slots=2), []
    rows = list(rows_on(spark, plan(50), watch=lambda *reached: seen.append(reached)))

    assert sorted(f"c{i}" for i in range(50)) == sorted(row["cell"] for row in rows)
    assert seen[-1] == (50, 350)
    assert seen == sorted(seen)
    assert [len(job) for job in spark.jobs] == [20, 20, 10], "two tasks per slot, and 16"


def test_a_task_says_which_attempt_it_is_and_checks_only_if_asked(ran, pyspark, plan):
    pyspark.attempt = 3
    list(rows_on(Context(), plan(1), watch=lambda *_: None, check=False))
    list(rows_on(Context(), plan(1), watch=lambda *_: None))

    assert ran == [("c0", False, 3), ("c0", True, 3)]


def test_a_cell_runs_with_its_own_seed(ran, plan, monkeypatch):
    """A scenario is sent once for all of them."""
    seeds = {}
    monkeypatch.setattr(cells, "timed", lambda own, *_, **__: seeds.update({own.id: own}) or {"cell": own.id})
    planned = plan(3)
    list(rows_on(Context(), planned, watch=lambda *_: None))

    assert [seeds[f"c{i}"].scenario.run.seed for i in range(3)] == [0, 1, 2]
    assert [replace(cell.scenario, axes=()) for cell in planned] == [
        replace(seeds[cell.id].scenario, axes=()) for cell in planned
    ]


def test_compiled_code_is_sent(ran, monkeypatch, plan):
    spark = Context()
    monkeypatch.setattr(cells, "warm", ran.append)
    list(rows_on(spark, plan(1), watch=lambda *_: None))

    assert spark.calls == [("broadcast", KERNEL)]
    assert ran[0] == KERNEL


def test_a_cluster_that_goes_ends_the_sweep_and_cancels_what_runs(ran, plan):
    """Its jobs would keep a shared cluster busy for nobody."""
    spark = Context()

    def gone(items, count):
        spark._jsc.stopped = True
        raise RuntimeError("broken pipe")

    spark.parallelize = gone
    with pytest.raises(ClusterError, match="the Spark cluster is gone"):
        list(rows_on(spark, plan(3), watch=lambda *_: None))

    assert spark.calls[1:] == [("cancelAllJobs",)]


def test_whoever_stops_listening_cancels_what_runs(ran, plan):
    """Ctrl-C comes between two rows."""
    spark = Context(slots=1)
    coming = rows_on(spark, plan(50), watch=lambda *_: None)
    next(coming)
    coming.close()

    assert spark.calls[1:] == [("cancelAllJobs",)]
    assert len(ran) < 50


def test_executors_that_vanish_are_noticed_while_rows_are_awaited(ran, monkeypatch, plan):
    """Spark itself would wait without a word."""
    looked = []
    monkeypatch.setattr(room._Jobs, "check_executors", lambda jobs: looked.append(True))
    list(rows_on(Context(), plan(1), watch=lambda *_: None))

    assert looked


def test_our_task_is_sent_as_text(ran, pyspark, plan):
    """Executors may not have the package."""
    list(rows_on(Context(), plan(0), watch=lambda *_: None))

    assert [spark_task] == pyspark.by_value


def test_lists_of_rows_are_merged_behind_each_other():
    """As tasks end."""
    merge = spark_task.RowsAccumulatorParam()

    assert merge.addInPlace(merge.addInPlace(merge.zero([{"old": 1}]), [{"a": 1}, {"b": 2}]), [{"c": 3}]) == [
        {"a": 1},
        {"b": 2},
        {"c": 3},
    ]


@pytest.mark.parametrize(("version", "is_replaced"), [(None, False), ("another", True)])
def test_another_version_of_the_package_gives_way_to_the_one_that_is_sent(monkeypatch, version, is_replaced):
    python = SimpleNamespace(modules={"sim": 1, "sim.studies": 2, "simpy": 3}, path=["first"])
    monkeypatch.setattr(spark_task, "sys", python)

    spark_task.import_driver_package("sent", version or code_version())

    assert (["simpy"] if is_replaced else ["sim", "sim.studies", "simpy"]) == list(python.modules)
    assert (["sent", "first"] if is_replaced else ["first"]) == python.path

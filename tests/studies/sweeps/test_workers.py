"""Where cells run; no Spark is needed to see how often it is started, and with which settings."""

from contextlib import contextmanager

import pytest

from sim.studies.cells import died, warm
from sim.studies.plan import cells
from sim.studies.progress import no_watch
from sim.studies.sweeps import run as room
from sim.studies.sweeps import spark_rows, spark_session
from sim.studies.sweeps.run import Workers


@pytest.fixture
def sessions(monkeypatch):
    """(event, settings) of sessions that are started and stopped; each gives the cell's id as its row."""
    seen = []

    @contextmanager
    def session(master, *, conf):
        seen.append(("started", conf))
        yield master
        seen.append(("stopped", conf))

    monkeypatch.setattr(spark_session, "context", session)
    monkeypatch.setattr(
        spark_rows, "rows_on", lambda spark, planned, **_: [{"cell": cell.id, "host": spark} for cell in planned]
    )
    return seen


def test_rounds_share_a_session(sessions, study):
    """Spark takes ten seconds of CPU to start."""
    planned = cells(study.scenarios)
    with Workers(master="local[1]") as workers:
        assert sessions == [], "nothing is started before there is anything to run"
        for _ in range(2):
            assert [cell.id for cell in planned] == [row["cell"] for row in workers.rows(planned, no_watch, check=True)]
        assert [event for event, _ in sessions] == ["started"]
    assert [event for event, _ in sessions] == ["started", "stopped"]


@pytest.mark.parametrize(("own", "expected"), [(None, "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"), ("-Xint", "-Xint")])
def test_java_compiles_quickly_unless_the_user_says_otherwise(sessions, own, expected):
    """Cells run in Python: a good compiler took half of what Spark cost them."""
    keys = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
    with Workers(master="local[1]", conf=own and dict.fromkeys(keys, own)) as workers:
        list(workers.rows([], no_watch, check=True))

    assert [dict.fromkeys(keys, expected)] * 2 == [conf for _, conf in sessions]


def test_processes_of_this_machine_need_no_block(study):
    warm()
    planned = cells(study.scenarios)[:1]
    assert [row["status"] for row in Workers(1).rows(planned, no_watch, check=True)] == ["ok"]


@pytest.mark.parametrize(
    ("jobs", "cores", "count", "expected"), [(None, 8, 2, 2), (None, 1, 2, 1), (5, 8, 2, 5), (1, 8, 2, 1)]
)
def test_there_are_as_many_processes_as_cores_and_no_more_than_cells(monkeypatch, study, jobs, cores, count, expected):
    """Unless somebody says how many."""
    given = []

    def run_each(work, items, *, jobs, watch, died):
        given.append((jobs, died))
        yield from ((i, {"cell": item.id}) for i, item in enumerate(items))

    monkeypatch.setattr(room, "warm", lambda: None)
    monkeypatch.setattr(room, "cores", lambda: cores)
    monkeypatch.setattr(room, "run_each", run_each)
    planned = cells(study.scenarios)[:count]
    rows = list(Workers(jobs).rows(planned, no_watch, check=True))

    assert [cell.id for cell in planned] == [row["cell"] for row in rows]
    assert [(expected, died)] == given


def test_a_cell_runs_as_it_was_asked_for(monkeypatch, study):
    """Its progress, and whether it is checked."""
    monkeypatch.setattr(room, "timed", lambda *arguments, check: (arguments, check))

    assert (("cell", print), False) == room._row(False, "cell", print)


def test_spark_gets_what_processes_get(monkeypatch, study):
    """The same cells, watch and checks."""
    seen = []

    @contextmanager
    def session(master, *, conf):
        yield master

    monkeypatch.setattr(spark_session, "context", session)
    monkeypatch.setattr(spark_rows, "rows_on", lambda *given, **named: seen.append((given, named)) or [])
    with Workers(master="local[1]") as workers:
        list(workers.rows([], no_watch, check=False))

    assert [(("local[1]", []), {"watch": no_watch, "check": False})] == seen

"""Where cells run; no Spark is needed to see how often it is started, and with which settings."""

from contextlib import contextmanager

import pytest

from sim.cells.cell import warm
from sim.cells.local import no_watch
from sim.cells.plan import cells
from sim.sweeps.spark import rows as spark_rows
from sim.sweeps.spark import session as spark_session
from sim.sweeps.workers import Workers


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
    monkeypatch.setattr(spark_rows, "rows_on", lambda spark, planned, **_: [{"cell": cell.id, "host": spark} for cell in planned])
    return seen


def test_rounds_share_a_session(sessions, study):
    """Spark takes ten seconds of CPU to start."""
    planned = cells(study.scenarios)
    with Workers(master="local[1]") as workers:
        assert [] == sessions, "nothing is started before there is anything to run"
        for _ in range(2):
            assert [cell.id for cell in planned] == [row["cell"] for row in workers.rows(planned, "interpreted", no_watch, check=True)]
        assert ["started"] == [event for event, _ in sessions]
    assert ["started", "stopped"] == [event for event, _ in sessions]


@pytest.mark.parametrize(("own", "expected"), [(None, "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"), ("-Xint", "-Xint")])
def test_java_compiles_quickly_unless_the_user_says_otherwise(sessions, own, expected):
    """Cells run in Python: a good compiler took half of what Spark cost them."""
    keys = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
    with Workers(master="local[1]", conf=own and dict.fromkeys(keys, own)) as workers:
        list(workers.rows([], "interpreted", no_watch, check=True))

    assert [dict.fromkeys(keys, expected)] * 2 == [conf for _, conf in sessions]


def test_processes_of_this_machine_need_no_block(study):
    warm("interpreted")
    planned = cells(study.scenarios)[:1]
    assert ["ok"] == [row["status"] for row in Workers(1).rows(planned, "interpreted", no_watch, check=True)]

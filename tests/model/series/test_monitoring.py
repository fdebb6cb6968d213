"""Loads as Prometheus has them: the same rates as the CSV file that they were made from."""

import json
from fractions import Fraction

import pytest

from sim.advice.horizon import load_worlds
from sim.model.job import Rate
from sim.model.schema.study import loads
from sim.model.schema.trace import Trace, TraceError, TraceTable, rates_of_trace
from sim.model.series.monitoring import RECIPE, MonitoringError, table_of_document
from sim.studies.sweeps.sweep_file import define
from tests.model.series.traces import answer, read_here

BEGIN_S, STEP_S = 1_763_850_000, 15
RATES = [1000 + 2 * (i * 37 % 200) for i in range(240)]
TIMES = [BEGIN_S + STEP_S * i for i in range(len(RATES))]
METRIC = "flink_taskmanager_job_task_operator_numRecordsInPerSecond"


def subtask(index, values=None, task="Source: orders", metric=METRIC, times=TIMES):
    values = [rate / 2 for rate in RATES] if values is None else values
    return {"__name__": metric, "task_name": task, "subtask_index": str(index)}, zip(times, values, strict=True)


def counted(subtasks):
    """What each of so many had counted at each scrape, one more than there are rates."""
    return [sum(RATES[:k]) * STEP_S // subtasks for k in range(len(RATES) + 1)]


SCRAPES = [*TIMES, TIMES[-1] + STEP_S]
COUNTED = "flink_taskmanager_job_task_operator_numRecordsIn"
FILES = {
    "prometheus.json": answer(subtask(0), subtask(1)),
    "counters.json": answer(*(subtask(i, counted(2), metric=COUNTED, times=SCRAPES) for i in (0, 1))),
    "grafana.csv": '"Time","orders"\n'
    + "".join(f"{at * 1000},{rate}\n" for at, rate in zip(TIMES, RATES, strict=True)),
    "excel.csv": 'sep=,\n"Time","orders"\n'
    + "".join(f"{at * 1000},{rate}\n" for at, rate in zip(TIMES, RATES, strict=True)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files, and the table that they were made from."""
    place = tmp_path_factory.mktemp("loads")
    (place / "plain.csv").write_text(
        "t_s,rate\n" + "".join(f"{at - BEGIN_S},{rate}\n" for at, rate in zip(TIMES, RATES, strict=True))
    )
    for name, text in FILES.items():
        (place / name).write_text(text)
    return place


def rates(folder, name, column):
    return rates_of_trace(Trace(trace=name, column=column), folder, until_ns=len(RATES) * STEP_S * 10**9, subtasks=1)


@pytest.mark.parametrize("name", FILES)
def test_a_scenario_has_the_rates_of_the_csv(folder, name):
    assert rates(folder, "plain.csv", "rate") == rates(folder, name, "orders")


SWEEP = """\
# How long do checkpoints take through the day?
version: 1
scenario: job.yaml
windows: {{source: orders, trace: {file}, every: 15 min, length: 10 min}}
answer: {{settings: [checkpoint.interval], show: [visible_p50_ms]}}
vary: {{checkpoint.interval: [5 s, 10 s]}}
"""
JOB = """\
# How long do checkpoints take?
version: 1
job:
  orders: {source: {rate: 1k/s, record: 1 kB}, parallelism: 2}
  sink: {input: {orders: hash}}
checkpoint: {interval: 5 s}
run: {duration: 1 min}
"""


@pytest.mark.parametrize("name", FILES)
def test_a_sweep_over_its_windows_is_the_same(folder, name):
    """Every cell has the same rates, and no column has to be named."""
    (folder / "job.yaml").write_text(JOB)

    def cells(file):
        (folder / "sweep.yaml").write_text(SWEEP.format(file=file))
        return [scenario.job.vertex("orders").source.rates for scenario in define(folder / "sweep.yaml").scenarios]

    assert [list(rate) for rate in cells("plain.csv")] == [list(rate) for rate in cells(name)]


@pytest.mark.parametrize("name", FILES)
def test_load_takes_the_one_source(folder, name):
    """`--load FILE` needs no column either."""
    study = loads(JOB)
    changes, _ = load_worlds(
        folder / "job.yaml", {"job": {"orders": {"source": {"rate": "1k/s"}}}}, study.scenarios[0], [str(folder / name)]
    )

    assert {"trace": str(folder / name), "column": "orders"} == changes["job.orders.source.rate"]


@pytest.mark.parametrize("name", FILES)
def test_traces_read_finds_the_rates(folder, tmp_path, name):
    counts = read_here(folder / name, tmp_path / "tables")
    kinds = counts.set_index("kind")["count"]

    assert len(RATES) == kinds["rates"]
    assert "quarantine" not in kinds.index


# ---------------------------------------------------------------------------------------------- what is in an answer


def made(*series):
    return table_of_document(answer(*series))


def test_samples_at_different_times_are_not_summed():
    """Two subtasks, 4 s apart, as a query without steps answers."""
    with pytest.raises(MonitoringError, match="samples at different times: ask a range query"):
        made(subtask(0, [100] * 4, times=TIMES[:4]), subtask(1, [200] * 4, times=[at + 4 for at in TIMES[:4]]))


OTHERS = {
    "grafana.json": [{"schema": {"fields": [{"type": "time"}, {"type": "number"}]}, "data": {"values": [[1], [2]]}}],
    "panel.json": {"results": {"A": {"frames": [{"schema": {"name": "A", "fields": []}, "data": {"values": []}}]}}},
    "datadog.json": {"status": "ok", "series": [{"metric": "orders", "pointlist": [[1000, 5]]}]},
    "datadog2.json": {"data": {"type": "timeseries_response", "attributes": {"times": [], "values": []}}},
    "cloudwatch.json": {"MetricDataResults": [{"Id": "m1", "Timestamps": [], "Values": []}]},
    "influx.json": {"results": [{"series": [{"name": "orders", "columns": ["time", "value"], "values": []}]}]},
    "offsets.csv": "time,topic,partition,offset\n1,orders,0,5\n",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_systems_and_offsets_are_refused_with_the_recipe(tmp_path, name):
    written = OTHERS[name]
    (tmp_path / name).write_text(written if isinstance(written, str) else json.dumps(written))

    with pytest.raises(TraceError) as refused:
        TraceTable(tmp_path / name)
    counts = read_here(tmp_path / name, tmp_path / "tables")

    assert str(refused.value).endswith(f"not read: {RECIPE}")
    assert counts["kind"].tolist() == ["quarantine"]
    assert RECIPE in counts["reason"].tolist()[0]


def test_a_missing_sample_is_a_blank():
    """A subtask without a sample at 30 s; all are silent from 45 s to 105 s; one begins later, after a rescale."""
    times = [TIMES[i] for i in (0, 1, 2, 3, 7, 8)]
    table = made(
        subtask(0, [1] * 6, times=times),
        subtask(1, [10] * 5, times=[*times[:2], *times[3:]]),
        subtask(2, [100] * 2, times=times[4:]),
    )

    assert [row[1] for row in table.rows] == ["11", "11", "", "11", "111", "111"]


def test_numbers_that_are_none_are_blank():
    assert [row[1] for row in made(subtask(0, ["1", "NaN", "3"], times=TIMES[:3])).rows] == ["1", "", "3"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"status": "error", "errorType": "bad_data", "error": "parse error"}, "refusal of Prometheus: parse error"),
        (
            {"status": "success", "data": {"resultType": "vector", "result": []}},
            "values of one moment: ask /api/v1/query_range",
        ),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, "holds no samples"),
        ({"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}}]}}, "without values"),
        (
            {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [1]}]}},
            "not pairs",
        ),
    ],
)
def test_an_answer_without_rates_says_why(document, message):
    with pytest.raises(MonitoringError, match=message):
        table_of_document(json.dumps(document))


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"jobs": []}', "[1, 2]"])
def test_other_json_is_of_neither(text, tmp_path):
    assert table_of_document(text) is None
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(TraceError, match="is JSON, but not an answer of Prometheus to a range query: export"):
        TraceTable(tmp_path / "other.json")


# ---------------------------------------------------------------------------------------------- local times


def test_the_hour_after_a_change_of_clocks(tmp_path):
    """Berlin, 26 October 2025: 02:00 to 03:00 comes twice, a row every 30 min."""
    local = ["01:30", "02:00", "02:30", "02:00", "02:30", "03:00"]
    (tmp_path / "local.csv").write_text(
        "time,rate\n" + "".join(f"2025-10-26 {at}:00,{i}\n" for i, at in enumerate(local))
    )

    found = rates_of_trace(
        Trace(trace="local.csv", column="rate", zone="Europe/Berlin"), tmp_path, until_ns=10**13, subtasks=1
    )
    assert tuple(Rate(i * 1800 * 10**9, Fraction(i)) for i in range(6)) == found
    with pytest.raises(TraceError, match="time does not increase: if daylight saving time ends here, set zone"):
        rates_of_trace(Trace(trace="local.csv", column="rate"), tmp_path, until_ns=10**13, subtasks=1)
    with pytest.raises(TraceError, match="'Berlin' is not a time zone"):
        rates_of_trace(Trace(trace="local.csv", column="rate", zone="Berlin"), tmp_path, until_ns=10**13, subtasks=1)

    for zone, rows in (("Europe/Berlin", 6), (None, 4)):
        counts = read_here(tmp_path / "local.csv", tmp_path / f"{zone}", zone=zone)
        assert rows == counts.set_index("kind")["count"]["rates"]

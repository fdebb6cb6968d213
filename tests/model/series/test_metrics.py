"""What the values of a metric are: a row of the table each, names in the spelling of each system, queries, and samples that count."""

import csv
from fractions import Fraction

import pytest

from sim.advice.horizon import load_worlds
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.schema.trace import Trace, TraceError, rates_of_trace
from sim.model.series.monitoring import (
    METRICS_FILE,
    QUERIES,
    Kind,
    NotRecordsError,
    classify_name,
    classify_series,
    table_of_document,
)
from sim.studies.sweeps.sweep_file import define
from tests.model.series.traces import answer, read_here

with METRICS_FILE.open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
GROWING = [10_000 + 600 * i for i in range(6)]
"""Samples that may be of anything, 60 s apart: as a counter 10/s."""


def rates(name, values=GROWING, step_s=60):
    """What Prometheus' answer to a query with this name gives: the rates, as texts."""
    points = [(step_s * i, value) for i, value in enumerate(values)]
    return [row[1] for row in table_of_document(answer(({"__name__": name}, points))).rows]


@pytest.mark.parametrize("row", ROWS, ids=[row["metric"] for row in ROWS])
def test_a_row_of_the_table(row):
    """Rates are taken, counters differentiated, and all else is refused with the query instead."""
    name, query = row["metric"], QUERIES.get(row["system"], QUERIES["flink"])
    match row["kind"]:
        case "rate":
            assert [str(value) for value in GROWING] == rates(name)
        case "counter":
            assert rates(name) == ["10"] * 5
        case "other":
            with pytest.raises(NotRecordsError) as refused:
                rates(name)
            assert f"'{name}' is {row['what']}, not a rate of records: query {query}" == str(refused.value)


def test_a_metric_stands_in_one_row():
    joined = [("".join(sign for sign in row["metric"].lower() if sign.isalnum()), row["system"]) for row in ROWS]
    names = [name for name, _ in joined]

    assert set() == {pair for pair in joined if names.count(pair[0]) > 1}


@pytest.mark.parametrize("query", [*QUERIES.values()])
def test_queries_that_are_proposed_give_a_rate(query):
    assert classify_name(query).kind is Kind.RATE


REPORTED = (
    "kafka_consumergroup_lag",
    "flink_taskmanager_job_task_operator_KafkaSourceReader_KafkaConsumer_records_lag_max",
    "flink_taskmanager_job_task_operator_pendingRecords",
    "flink_taskmanager_job_task_operator_currentEmitEventTimeLag",
    "flink_taskmanager_job_task_buffers_inPoolUsage",
    "flink_taskmanager_job_task_operator_numRecordsInErrors",
    "flink_jobmanager_job_lastCheckpointSize",
    "flink_jobmanager_job_numRestarts",
    "aws_kafka_sum_offset_lag_average",
    "busyTimeMsPerSecond",
    "numBytesInPerSecond",
    "flink_jobmanager_job_lastCheckpointDuration",
)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((Kind.OTHER, name) for name in REPORTED),
        (Kind.RATE, "flink_taskmanager_job_task_operator_numRecordsInPerSecond"),  # Prometheus
        (Kind.RATE, "flink.operator.numRecordsInPerSecond"),  # Datadog
        (Kind.RATE, "taskmanager_job_task_numRecordsInPerSecond.rate"),  # InfluxDB: a meter has a rate and a count
        (Kind.COUNTER, "taskmanager_job_task_numRecordsInPerSecond.count"),
        (Kind.RATE, "org.apache.flink.taskmanager.job.task.operator.numRecordsInPerSecond.Rate"),  # JMX
        (Kind.COUNTER, "org.apache.flink.taskmanager.job.task.operator.numRecordsIn.Count"),
        (Kind.COUNTER, "flink_taskmanager_job_task_numRecordsIn"),
        (Kind.RATE, "numrecordsinpersecond"),
        (Kind.RATE, "numRecordsInPerSecond (Mean)"),
        (Kind.OTHER, "sum:kafka.consumer_lag{topic:orders}"),
        (Kind.RATE, "sum:kafka.messages_in.rate{topic:orders}"),
        (Kind.RATE, "per_second(sum:kafka.broker_offset{topic:orders})"),
        (Kind.OTHER, "sum by (topic) (kafka_consumergroup_lag)"),
        (Kind.OTHER, '{__name__="kafka_consumergroup_lag", topic="orders"}'),
        (Kind.RATE, 'sum(rate(kafka_topic_partition_current_offset{topic="orders"}[1m]))'),
        (Kind.OTHER, "sum(rate(kafka_consumergroup_lag[1m]))"),  # how fast the backlog grows
        (Kind.OTHER, "rate(numRecordsInPerSecond[1m])"),
        (Kind.OTHER, "increase(flink_taskmanager_job_task_numRecordsIn[5m])"),
        (Kind.OTHER, "aws_kinesis_incoming_records_average"),
        (Kind.OTHER, "rate(container_cpu_usage_seconds_total[5m])"),
        # names that nobody knows
        (Kind.OTHER, "my_topic_lag"),
        (Kind.OTHER, "consumer lag (orders)"),
        (Kind.OTHER, "heap used MB"),
        (Kind.OTHER, "load %"),
        (Kind.OTHER, "requests per minute"),
        (Kind.OTHER, "bytes_per_5min"),
        (Kind.OTHER, "MB/s"),
        (Kind.OTHER, "errors per second"),
        (Kind.OTHER, "order queue depth"),
        (Kind.OTHER, "restarts"),
        (Kind.OTHER, "state size"),
        (Kind.COUNTER, "http_requests_total"),
        (Kind.COUNTER, "orders offset"),
        (Kind.RATE, "orders per second"),
        (Kind.RATE, "events/s"),
        (Kind.RATE, "msg_rate"),
        (Kind.RATE, "throughput"),
        (Kind.UNKNOWN, "orders"),
        (Kind.UNKNOWN, "offered load"),
        (Kind.UNKNOWN, "v"),
        (Kind.UNKNOWN, "1"),
        (Kind.UNKNOWN, "value"),
    ],
)
def test_names_in_the_spelling_of_each_system(kind, name):
    assert kind is classify_name(name).kind


UNEVEN = [(i * 7919) % 97 + 3 for i in range(30)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Kind.COUNTER, [10**6 + sum(UNEVEN[:i]) for i in range(30)]),  # it began long ago
        # it began again
        (Kind.COUNTER, [sum(UNEVEN[:i]) for i in range(1, 25)] + [sum(UNEVEN[:i]) for i in range(1, 20)]),
        (Kind.OTHER, [sum(UNEVEN[:i]) for i in range(30)]),  # a counter that began just now, or a load that rises
        (Kind.RATE, [100 * i for i in range(30)]),  # a ramp
        (Kind.RATE, UNEVEN),
        (Kind.RATE, [10**6 + sum(UNEVEN[:i]) for i in range(10)]),  # too few to say
    ],
)
def test_samples_tell_a_counter_where_the_name_does_not(kind, values):
    assert kind is classify_series("orders", map(Fraction, values)).kind
    assert Kind.RATE is classify_series("orders per second", map(Fraction, values)).kind


def test_a_counter_by_its_name_that_falls_is_refused():
    assert "'orders_total' is a counter by its name, but falls" in classify_series(
        "orders_total", map(Fraction, UNEVEN)
    ).refusal("orders_total")


# ------------------------------------------------------------------------------------------ files


def files(folder, name, values, step_s=60):
    """The same samples as CSV and as Prometheus gives them."""
    at = [1_764_400_000 + step_s * i for i in range(len(values))]
    pairs = list(zip(at, values, strict=True))
    written = {
        "lag.csv": f'Time,"{name}"\n' + "".join(f"{t},{v}\n" for t, v in pairs),
        "prometheus.json": answer(({"__name__": name}, pairs)),
    }
    for file, text in written.items():
        (folder / file).write_text(text)
    return list(written)


FILES = ["lag.csv", "prometheus.json"]


@pytest.mark.parametrize("file", FILES)
def test_a_lag_is_refused_in_every_format(tmp_path, file):
    files(tmp_path, "kafka_consumergroup_lag", [120_000, 121_000, 119_000])
    query = QUERIES["kafka-exporter"]

    with pytest.raises(TraceError, match="a backlog in records") as refused:
        rates_of_trace(Trace(trace=file, column="kafka_consumergroup_lag"), tmp_path, until_ns=10**12, subtasks=1)
    counts = read_here(tmp_path / file, tmp_path / "tables")

    assert f"query {query}, or write scale:" in str(refused.value)
    assert [f"query {query}; --per '1 s'" in reason for reason in counts["reason"]] == [True]
    assert counts["kind"].tolist() == ["quarantine"]


@pytest.mark.parametrize("file", FILES)
def test_per_and_scale_override_in_every_format(tmp_path, file):
    files(tmp_path, "kafka_consumergroup_lag", [120_000, 121_000, 119_000])
    trace = Trace(trace=file, column="kafka_consumergroup_lag", scale=1)

    found = rates_of_trace(trace, tmp_path, until_ns=10**12, subtasks=1)
    counts = read_here(tmp_path / file, tmp_path / "tables", per_s=60.0)

    assert [rate.per_second for rate in found] == [120_000, 121_000, 119_000]
    assert counts.set_index("kind")["count"]["rates"] == 3


@pytest.mark.parametrize("file", FILES)
def test_a_counter_is_differentiated_in_every_format_and_that_is_said(tmp_path, file):
    files(tmp_path, "flink_taskmanager_job_task_numRecordsIn", [0, 600, 1800, 300])
    name = "flink_taskmanager_job_task_numRecordsIn"

    found = rates_of_trace(Trace(trace=file, column=name), tmp_path, until_ns=10**12, subtasks=1)
    counts = read_here(tmp_path / file, tmp_path / "tables")

    assert [rate.per_second for rate in found] == [10, 20, 5]
    assert counts[counts["kind"] == "rates"].set_index("kind")["count"].to_dict() == {"rates": 3}
    assert "counters are turned into rates; 1 fell back to 0 and went on from there" in counts["reason"].tolist()


def test_a_run_says_that_counters_are_turned_into_rates(tmp_path):
    files(tmp_path, "numRecordsIn", [0, 600, 1800])
    job = "job: {orders: {source: {rate: {trace: lag.csv, column: numRecordsIn}, record: 1 kB}}, sink: {input: {orders: hash}}}"
    study = loads(
        f"# Does it keep up?\nversion: 1\n{job}\ncheckpoint: {{interval: 5 s}}\nrun: {{duration: 1 min}}\n",
        folder=tmp_path,
    )

    assert [warning.message for warning in study.warnings] == ["lag.csv: counters are turned into rates"]


JOB = """\
# Does it keep up?
version: 1
job: {orders: {source: {rate: 1k/s, record: 1 kB}}, sink: {input: {orders: hash}}}
checkpoint: {interval: 5 s}
run: {duration: 1 min}
"""
SWEEP = """\
# Which interval?
version: 1
scenario: job.yaml
windows: {source: orders, trace: lag.csv, at: [0 s], length: 10 s}
answer: {settings: [checkpoint.interval], show: [visible_p50_ms]}
vary: {checkpoint.interval: [5 s, 10 s]}
"""


def test_advise_and_sweep_refuse_a_lag_as_run_does(tmp_path):
    files(tmp_path, "kafka_consumergroup_lag", [120_000, 121_000, 119_000])
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    plain = {"job": {"orders": {"source": {"rate": "1k/s"}}}}

    for file in ("lag.csv", "prometheus.json"):
        with pytest.raises(ScenarioError, match="a backlog in records"):
            load_worlds(tmp_path / "job.yaml", plain, loads(JOB).scenarios[0], [str(tmp_path / file)])
    with pytest.raises(ScenarioError, match="a backlog in records"):
        define(tmp_path / "sweep.yaml")


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("timestamp,records-lag-max", "quarantine"),
        ("ts,events_per_minute", "quarantine"),
        ("ts,numRecordsIn", "rates"),
        ("ts,msg_rate", "rates"),
    ],
)
def test_a_table_of_a_time_and_a_metric_needs_no_choices(tmp_path, header, kind):
    (tmp_path / "two.csv").write_text(f"{header}\n1764400000,600\n1764400060,1200\n1764400120,1300\n")
    counts = read_here(tmp_path / "two.csv", tmp_path / "tables")

    assert kind in set(counts["kind"])
    assert ("--per '1 s' takes" in "".join(counts["reason"].dropna())) == (kind == "quarantine")


def test_offsets_and_lags_of_minus_one_are_unknown():
    """kafka-exporter says -1 for a group that has not committed; NaN and the ends of longs are no numbers either."""
    values = [-1, 600, "NaN", 1800, -(2**63), 2400]

    assert rates("kafka_consumergroup_current_offset", values) == ["10", "5"]


@pytest.mark.parametrize(
    ("name", "is_offered"),
    [
        ("flink_jobmanager_job_lastCheckpointSize", False),
        ("my_state_size_bytes", False),
        ("step_duration_ms", False),
        ("orders_backlog", True),
        ("requests per minute", True),
    ],
)
def test_what_surely_counts_no_records_is_not_offered_to_be_taken_as_such(name, is_offered):
    assert is_offered == classify_name(name).refusal(name, "; --per '1 s'").endswith("; --per '1 s'")

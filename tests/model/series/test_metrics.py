"""What a metric counts: names in the spelling of each system, queries, and samples that count."""

from fractions import Fraction

import pytest

from sim.advice.horizon import load_worlds
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.schema.trace import Trace, TraceError, rates_of_trace
from sim.model.series.monitoring import COUNTER, RATE, quantity_in_name, why_refused
from sim.studies.sweeps.sweep_file import define
from tests.model.series.traces import answer, read_here

OTHER = "another quantity"
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
        *((OTHER, name) for name in REPORTED),
        (RATE, "flink_taskmanager_job_task_operator_numRecordsInPerSecond"),  # Prometheus
        (RATE, "flink.operator.numRecordsInPerSecond"),  # Datadog
        (RATE, "taskmanager_job_task_numRecordsInPerSecond.rate"),  # InfluxDB: a meter has a rate and a count
        (COUNTER, "taskmanager_job_task_numRecordsInPerSecond.count"),
        (RATE, "org.apache.flink.taskmanager.job.task.operator.numRecordsInPerSecond.Rate"),  # JMX
        (COUNTER, "org.apache.flink.taskmanager.job.task.operator.numRecordsIn.Count"),
        (COUNTER, "flink_taskmanager_job_task_numRecordsIn"),
        (RATE, "numrecordsinpersecond"),
        (RATE, "numRecordsInPerSecond (Mean)"),
        (OTHER, "sum:kafka.consumer_lag{topic:orders}"),
        (RATE, "sum:kafka.messages_in.rate{topic:orders}"),
        (RATE, "per_second(sum:kafka.broker_offset{topic:orders})"),
        (OTHER, "sum by (topic) (kafka_consumergroup_lag)"),
        (OTHER, '{__name__="kafka_consumergroup_lag", topic="orders"}'),
        (RATE, 'sum(rate(kafka_topic_partition_current_offset{topic="orders"}[1m]))'),
        (OTHER, "sum(rate(kafka_consumergroup_lag[1m]))"),  # how fast the backlog grows
        (OTHER, "rate(numRecordsInPerSecond[1m])"),
        (OTHER, "increase(flink_taskmanager_job_task_numRecordsIn[5m])"),
        (OTHER, "aws_kinesis_incoming_records_average"),
        (OTHER, "rate(container_cpu_usage_seconds_total[5m])"),
        # names that nobody knows
        (OTHER, "my_topic_lag"),
        (OTHER, "consumer lag (orders)"),
        (OTHER, "heap used MB"),
        (OTHER, "load %"),
        (OTHER, "requests per minute"),
        (OTHER, "bytes_per_5min"),
        (OTHER, "MB/s"),
        (OTHER, "errors per second"),
        (OTHER, "order queue depth"),
        (OTHER, "restarts"),
        (OTHER, "state size"),
        (COUNTER, "http_requests_total"),
        (COUNTER, "orders offset"),
        (RATE, "orders per second"),
        (RATE, "events/s"),
        (RATE, "msg_rate"),
        (RATE, "throughput"),
        ("", "orders"),
        ("", "offered load"),
        ("", "v"),
        ("", "1"),
        ("", "value"),
    ],
)
def test_names_in_the_spelling_of_each_system(kind, name):
    found = quantity_in_name(name)

    assert kind == (found if found in (RATE, COUNTER, "") else OTHER)


UNEVEN = [(i * 7919) % 97 + 3 for i in range(30)]


@pytest.mark.parametrize(
    ("grows", "values"),
    [
        (True, [10**6 + sum(UNEVEN[:i]) for i in range(30)]),
        # it began again
        (True, [sum(UNEVEN[:i]) for i in range(1, 25)] + [sum(UNEVEN[:i]) for i in range(1, 20)]),
        (False, [100 * i for i in range(30)]),  # a ramp
        (False, UNEVEN),
        (False, [10**6 + sum(UNEVEN[:i]) for i in range(10)]),  # too few to say
    ],
)
def test_samples_tell_a_counter_where_the_name_does_not(grows, values):
    refused = why_refused("orders", map(Fraction, values))

    assert refused == grows * (
        "'orders' is a series that only grows, as counters do, not a rate of records: query rate(...[1m]) of it"
    )
    assert why_refused("orders per second", map(Fraction, values)) == ""


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
    query = "numRecordsInPerSecond or numRecordsOutPerSecond of the source"

    with pytest.raises(TraceError, match="is a backlog, not a rate of records") as refused:
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
def test_a_counter_is_refused_in_every_format_with_the_query_of_its_rate(tmp_path, file):
    files(tmp_path, "flink_taskmanager_job_task_numRecordsIn", [0, 600, 1800, 300])
    name = "flink_taskmanager_job_task_numRecordsIn"

    with pytest.raises(
        TraceError, match=r"is a counter, not a rate of records: query rate\(\.\.\.\[1m\]\) of it, or write"
    ):
        rates_of_trace(Trace(trace=file, column=name), tmp_path, until_ns=10**12, subtasks=1)
    assert read_here(tmp_path / file, tmp_path / "tables")["kind"].tolist() == ["quarantine"]


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
        with pytest.raises(ScenarioError, match="is a backlog, not"):
            load_worlds(tmp_path / "job.yaml", plain, loads(JOB).scenarios[0], [str(tmp_path / file)])
    with pytest.raises(ScenarioError, match="is a backlog, not"):
        define(tmp_path / "sweep.yaml")


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("timestamp,records-lag-max", "quarantine"),
        ("ts,events_per_minute", "quarantine"),
        ("ts,numRecordsIn", "quarantine"),
        ("ts,msg_rate", "rates"),
    ],
)
def test_a_table_of_a_time_and_a_metric_needs_no_choices(tmp_path, header, kind):
    (tmp_path / "two.csv").write_text(f"{header}\n1764400000,600\n1764400060,1200\n1764400120,1300\n")
    counts = read_here(tmp_path / "two.csv", tmp_path / "tables")

    assert kind in set(counts["kind"])
    assert ("--per '1 s' takes" in "".join(counts["reason"].dropna())) == (kind == "quarantine")


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
    assert is_offered == why_refused(name, override="; --per '1 s'").endswith("; --per '1 s'")

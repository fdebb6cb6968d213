"""Reports of docs/public-reports.md: what decides the answer is printed, and what was false before is not."""

import pytest
from typer.testing import CliRunner

from sim.app.cli import app
from sim.app.verbs.findings import job_findings
from sim.model.schema.study import loads
from sim.studies.compare import compare
from tests.places import DATA


def overrides(**values):
    """`--set KEY=VALUE` of each; `_` stands for a dot."""
    return [word for key, value in values.items() for word in ("--set", f"{key.replace('_', '.')}={value}")]


REPORTS = DATA / "public-reports"
CASES = {
    "14-scaling-within-one-minute": (
        [
            "run",
            "scenario.yaml",
            "--set",
            "run.duration=7 min",
            "--set",
            "job.clicks.source.rate=1k/s",
            "--no-assumptions",
        ],
        [
            "Records wait longer than recoveries.downtime.max, which",
            "up to 66 s with scheduler default, from checkpoint (46 s for records due after the job stopped)",
            "After a planned restart scheduler default, from checkpoint replays",
            "scheduler default, from savepoint replays 0",
            "All 4 expectations hold.",
            "restart.scheduler makes no difference here: default and adaptive give the same results.",
            "A rescale is simulated as a new job that begins from a snapshot: that the adaptive scheduler rescales in place, when the",
            " next checkpoint has completed (2.0 and later), is not simulated",
            "The longest downtime, 43 s (job 1 begins from",
            "133 ms until the new ones have slots and are deployed, 43 s until all of them run (40 GB are read).",
        ],
        ["scheduler adaptive, from checkpoint replays"],
    ),
    "07-tolerable-failures-log": (
        ["explain", "jobmanager.log"],
        ["7 checkpoints failed, at most 3 in a row (10 to 12)", "a completed checkpoint sets their count to 0"],
        [],
    ),
    "05-pasted-flink-conf-changelog-timeout": (
        [
            "run",
            "scenario.yaml",
            "--set",
            "run.duration=4 s",
            "--set",
            "faults=[]",
            "--set",
            "job.kafka.source.rate=1k/s",
            "--set",
            "job.enrich.service=100 ms",
            "--no-assumptions",
        ],
        [
            "the changelog of 'enrich' is kept in memory, as Flink does unless state.changelog.storage is filesystem",
            "it owns 3 of 256 key groups, and 104 of its 120 subtasks own 2 (a max-parallelism that is a multiple of 120",
        ],
        ["an upload of the changelog"],
    ),
    "18-iceberg-commit-every-three-seconds": (
        [
            "run",
            "scenario.yaml",
            "--set",
            "job.trickle.source.rate=0.05/s",
            "--set",
            "run.duration=10 min",
            "--no-assumptions",
        ],
        [
            "Requests, bytes and cost are without the metadata that 'lake' writes for each commit, at least a manifest, a manifest list and a",
            "Commits per hour: ",
            "of 200 completed checkpoints had no data to commit; Iceberg makes an empty commit after 10 of these in a row",
        ],
        ["of 2 completed checkpoints had no data", "of 1 completed checkpoints had no data"],
    ),
    "06-when-is-the-next-checkpoint": (
        ["run", "scenario.yaml"],
        [
            "every 13 s with size 800 MB, min-pause 5 s instead of every 10 s",
            "every 16 s with size 1600 MB, min-pause 0 s",
        ],
        ["the strategies differ by less than"],
    ),
    "09-stop-with-savepoint-then-no-commits": (
        ["run", "scenario.yaml", "--no-assumptions"],
        [
            "stop drain continues a drained job ",
            "stop no-drain runs on ",
            "Not a prediction: stop drain: a job starts from the savepoint of a drained job.",
        ],
        ["stop drain runs on", "Nothing lost in the simulation", "record size 1 B"],  # of committables
    ),
    "10-rolled-back-to-older-savepoint": (
        ["run", "scenario.yaml", "--no-assumptions"],
        [
            "connector iceberg-v2: job 1 begins from canonical 7 of job 0, which had committed up to checkpoint 11: 120k records",
            "are read again, 90k of them are committed twice, if it has a new job id; one that keeps its id (application mode with",
            "high availability, Kubernetes operator) drops the output of its checkpoints 8 to 11 for good",
            "its checkpoints 8 to 11 commit nothing, as their numbers are not above 11: a failure before a later one is committed may",
        ],
        [],
    ),
    "08-operator-restarts-healthy-job": (
        ["run", "scenario.yaml", "--no-assumptions"],
        ["known defects may apply", "FLINK-34131", "at most 2 in a row, of 3 that are tolerated"],
        [],
    ),
    "12-cdc-without-checkpoints": (
        ["run", "scenario.yaml"],
        ["With interval off checkpoints are off (checkpoint.interval): output of 'handover' never becomes visible"],
        ["run longer"],
    ),
    "13-reactive-scale-down": (
        ["run", "scenario.yaml"],
        ["flink.heartbeat.timeout: is less than heartbeat-interval, 10 s by default: Flink does not start; write both"],
        ["downtime"],
    ),
    "15-savepoint-smaller-than-checkpoint": (
        ["explain", "metrics.json"],
        ["has metrics of a monitoring system, no answers of Flink's REST API"],
        ["no field 'format'"],
    ),
    "16-incremental-size-equals-full-size": (
        ["explain", "checkpoints.json"],
        ["Checkpointed size equals full size in all 10 checkpoints", "state.storage.fs.memory-threshold"],
        [],
    ),
    "17-hourly-savepoint-of-240-gb": (
        [
            "run",
            "scenario.yaml",
            "--no-assumptions",
            *overrides(
                run_duration="90 s",
                actions="[{savepoint: canonical, at: 12 s}]",
                checkpoint_interval="10 s",
                job_offers_source_rate="80/s",
                job_join1_state_size="1 GB",
                job_join2_state_size="1 GB",
                job_join3_state_size="1 GB",
                job_join4_state_size="4 GB",
            ),
        ],
        [
            "Canonical savepoint 3 writes 7 GB",
            "during which no checkpoint is triggered",
            "of savepoint 3 (canonical: at most at checkpoint.savepoint-rate): neither storage nor barriers decide",
        ],
        [],
    ),
    "19-kafka-duplicates-in-the-next-job": (
        ["run", "scenario.yaml"],
        [
            "readers need isolation.level=read_committed",
            "commits.again.sum == 0: it is 2 (again: requested again after a restore, when all of its output was visible already",
        ],
        ["2 bool"],
    ),
    "20-cdc-snapshot-twice-log": (
        ["import", "jobmanager.log"],
        ["interval: 3 min", "UNKNOWN: Which execution.checkpointing.interval is configured?"],
        ["interval: 13 min"],
    ),
}


FILESYSTEM = "flink.state.changelog.storage=filesystem"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            [FILESYSTEM],
            "longer than 1 s is attempted again while it goes on, 3 attempts in all, and fails the checkpoint if none has ended by 3 s",
        ),
        (
            [FILESYSTEM, "flink.dstl.dfs.upload.max-attempts=1"],
            "longer than 1 s fails the checkpoint if none has ended by 1 s",
        ),
        ([FILESYSTEM, "flink.dstl.dfs.upload.timeout=1 min"], ""),
    ],
    ids=["Flink's defaults", "one attempt", "long enough"],
)
def test_a_short_timeout_of_uploads_is_named(changes, said):
    scenarios = loads(
        (REPORTS / "05-pasted-flink-conf-changelog-timeout" / "scenario.yaml").read_text(), overrides=changes
    ).scenarios
    found = [
        remark.text
        for remark in job_findings("job", scenarios, None)
        if "upload of the changelog of 'enrich'" in remark.text
    ]

    assert [said in text for text in found] == [True] * bool(said)


@pytest.mark.parametrize("name", CASES)
def test_what_decides_the_answer_is_printed(name, tmp_path, monkeypatch):
    (verb, file, *options), there, absent = CASES[name]
    monkeypatch.chdir(tmp_path)

    done = CliRunner().invoke(app, [verb, str(REPORTS / name / file), *options])
    printed = " ".join((done.stdout + done.stderr).replace("\n", " ").split())

    assert [text for text in there if text not in printed] == []
    assert [text for text in absent if text in printed] == []


def test_each_report_of_the_page_has_its_input():
    rows = [
        line
        for line in (REPORTS.parents[2] / "docs" / "public-reports.md").read_text().splitlines()
        if line.startswith("| [")
    ]

    assert len(rows) == len([folder for folder in REPORTS.iterdir() if any(folder.iterdir())])


@pytest.mark.parametrize(
    ("commit", "said"),
    [
        ("as-connector", ["'out' asks for transactions of 60 min"]),
        ("{transaction-timeout: 15 min}", []),
        ("{transaction-timeout: 900 ms}", ["'out' keeps each transaction open for 1 s"]),
    ],
)
def test_transactions_that_brokers_refuse_by_default_are_named(commit, said):
    """KafkaSink asks for 1 h, brokers allow 15 min: such a job does not start.  One that outlives its transactions is fenced."""
    study = loads(
        "version: 1\njob: {a: {source: {rate: 10/s, record: 1 kB}}, out: {input: {a: hash}, service: 1 ms, "
        f"connector: kafka-exactly-once, commit: {commit}}}}}\ncheckpoint: {{interval: 1 s}}\nrun: {{duration: 3 s}}\n"
    )

    found = compare(study, jobs=1, check=False).outcomes

    assert [text.partition(" (")[0] for text in found if text.startswith("'out' ")] == said


def test_each_strategy_has_its_own_sink():
    """Connectors may be what differs: what a table format writes is told of the strategies that write one, in any order."""
    text = (
        "version: 1\njob: {a: {source: {rate: 10/s, record: 1 kB}}, out: {input: {a: hash}, service: 1 ms, flush: {share: 100 %, files: 1}, "
        "connector: [CONNECTORS], commit: as-connector}}\ncheckpoint: {interval: 1 s}\n"
        "storage: {object-store: {latency: 1 ms}}\nrun: {duration: 3 s}\n"
    )
    for connectors in ("iceberg-v2, kafka-exactly-once", "kafka-exactly-once, iceberg-v2"):
        found = compare(loads(text.replace("CONNECTORS", connectors)), jobs=1, check=False)
        (left_out,) = [text for text in found.outcomes if "metadata" in text]

        assert left_out.endswith(
            "'out' writes for each commit, at least a manifest, a manifest list and a table metadata file."
        )
        assert sum("asks for transactions" in text for text in found.outcomes) == 1

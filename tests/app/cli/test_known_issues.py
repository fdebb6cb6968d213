"""`ckptsim known-issues`, and what other commands say of known defects."""

import json

import pytest

from sim.jobs.evidence.known_issues import known_issues
from sim.model.schema.study import loads
from tests.places import DATA, USERS

REPORT = DATA / "reports" / "br11" / "scenario.yaml"
"""apache/hudi#19215 and #19357: a job restarts while Hudi's coordinator commits."""
JOB = """\
# Is anything known of this job?
version: 1
job:
  src:  {source: {rate: 200/s, record: 100 B}}
  sink: {input: {src: hash}, service: 1 us, connector: {name: hudi, version: VERSION}, commit: as-connector}
checkpoint: {interval: 1 s}
cluster: {version: 2.3.0}
faults: [{commit: sink, at: 2 s}]
run: {duration: 5 s}
"""


@pytest.fixture
def job(tmp_path):
    def write(version="1.1.0", name="job.yaml"):
        (tmp_path / name).write_text(JOB.replace("VERSION", version))
        return tmp_path / name

    return write


def test_it_lists_the_catalogue(ckptsim):
    done = ckptsim("known-issues")

    assert (done.exit_code, done.stderr) == (0, "")
    assert [issue.id for issue in known_issues() if issue.id not in done.stdout] == []
    assert f"{len(known_issues())} known defects." in done.stdout


def test_a_job_says_which_apply_and_why(ckptsim, job):
    done = ckptsim(f"known-issues {job()}")
    (row,) = [row for row in json.loads(ckptsim(f"known-issues {job()} --json").stdout) if row["id"] == "hudi#19215"]

    assert "hudi#19215: A buffer entry" in done.stdout
    assert (row["applies"], row["holding"]) == (True, ["hudi 1.1.0 has it", "a connector is hudi", "a commit fails"])
    assert row["unsure"] == ["the JobManager is lost"]
    assert "1 known defect applies, " in done.stdout
    assert "Set job.src.connector to know more" in done.stdout


def test_another_version_can_be_asked_for(ckptsim, job):
    """What an upgrade would bring."""
    upgrade = "--set 'job.sink.connector={name: hudi, version: 0.14.1}'"
    texts = [ckptsim(f"known-issues {job('0.13.0')} {more}").stdout for more in ("", upgrade)]

    assert ["HUDI-7132" in text for text in texts] == [True, False]
    assert ["HUDI-6588" in text for text in texts] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (f"{REPORT} --set cluster.version=new", "'new' is not a version"),
        (f"{USERS}/R10-q12-aligned.zip --set cluster.version=2.1", "--set: is for scenario files"),
        ("nowhere.yaml", "no such file"),
    ],
)
def test_mistakes_are_named(ckptsim, arguments, message):
    done = ckptsim(f"known-issues {arguments}")

    assert done.exit_code in (2, 3)
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_the_report_of_hudi_does_not_say_that_nothing_is_lost(ckptsim, tmp_path):
    """Nothing is in the simulation, and so the code is 0; two known defects lose an instant, whatever the barriers."""
    done = ckptsim(f"run {REPORT} --out {tmp_path}/kept --set 'job.writer.commit={{time: 20 s}}'")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Nothing lost in the simulation")]
    kept = json.loads((tmp_path / "kept" / "comparison.json").read_text())

    assert done.exit_code == 0
    assert (
        "known defects may apply, which can lose, repeat or change records and are not simulated (hudi#19215, hudi#19357"
        in line
    )
    assert "known defects may apply (loss " in done.stderr
    assert "set the version of hudi" in done.stderr.replace("cluster.version, ", "")
    assert line in kept["outcomes"]
    assert {"hudi#19215", "hudi#19357"} <= {row["id"] for row in kept["known_issues"]}
    assert any("known defects may apply" in finding for finding in kept["findings"])


def test_a_run_warns_of_what_applies(ckptsim, job, tmp_path):
    done = ckptsim(f"run {job()} --jobs 1 --out {tmp_path}/kept")
    ckptsim(f"report {tmp_path}/kept -o {tmp_path}/page.html")
    page = (tmp_path / "page.html").read_text()

    assert "warning: job: known defect hudi#19215 (loss): A global failover" in done.stderr
    assert "Not simulated. Way out: a release with apache/hudi#19237" in done.stderr
    assert "known defect hudi#19215 (loss)" in page
    assert "Nothing lost in the simulation" in page


def test_nothing_is_said_where_nothing_is_known(ckptsim, job, tmp_path):
    """Neither of a job nor of its results."""
    done = ckptsim(
        f"run {job()} --set job.sink.connector=at-least-once --set 'faults=[{{kill: sink, at: 2 s}}]'"
        f" --set cluster.version=2.9.0 --jobs 1 --out {tmp_path}/kept"
    )

    assert done.exit_code == 0
    assert "Nothing lost" not in done.stdout


def test_a_sweep_and_an_explanation_say_it(ckptsim, job, tmp_path):
    file = job()
    swept = ckptsim(f"sweep {file} --json --jobs 1 --out {tmp_path}/kept")
    explained = ckptsim(f"explain {file} --json")

    assert "known defect hudi#19215" in swept.stderr
    assert "hudi#19215" in {row["id"] for row in json.loads(swept.stdout)["known_issues"]}
    assert "known defect hudi#19215" in explained.stderr
    assert "hudi#19215" in {row["id"] for record in json.loads(explained.stdout) for row in record["known_issues"]}


def test_a_difference_names_those_of_one_side(ckptsim, job, tmp_path):
    """Another version changes nothing else."""
    file = job("0.13.0")
    done = ckptsim(
        f"diff {file} {file} --set-b 'job.sink.connector={{name: hudi, version: 1.1.0}}' --jobs 1 --replications 1"
    )

    assert "that may apply to" in done.stdout
    assert "HUDI-7132" in done.stdout


@pytest.mark.parametrize(
    ("source", "applies", "may"),
    [
        ("users-jobs/R10-q12-aligned.zip", ["FLINK-27789"], []),
        ("users-jobs/R5-changelog-unaligned.zip", [], ["FLINK-38307", "FLINK-39964"]),
        ("rest/keeping-up.zip", [], ["FLINK-39964"]),
    ],
)
def test_real_answers_of_a_job(ckptsim, source, applies, may):
    """Flink's version is in /config, legacy sources have no busy time, the backend and the log of changes are in the configuration."""
    found = {row["id"]: row["applies"] for row in json.loads(ckptsim(f"known-issues {DATA}/{source} --json").stdout)}
    imported = ckptsim(f"import {DATA}/{source} --no-backtest --json")

    assert applies == [name for name in found if found[name]]
    assert {*may} <= {name for name in found if not found[name]}
    assert [*found] == [row["id"] for row in json.loads(imported.stdout)["known_issues"]]
    assert all(f"known defect {name}" in imported.stderr for name in applies)
    assert loads(json.loads(imported.stdout)["scenario"]).scenarios[0].cluster.version == "2.3.0"


def test_an_explanation_of_a_real_job_says_it(ckptsim):
    done = ckptsim(f"explain {USERS}/R10-q12-aligned.zip --json")

    assert "known defect FLINK-27789" in done.stderr
    assert "FLINK-27789" in {row["id"] for row in json.loads(done.stdout)["known_issues"]}


def test_a_deployment_has_keys_that_defects_are_about(ckptsim, job, tmp_path):
    """FLINK-34131 is about a key of the Kubernetes operator, which the scenario does not set."""
    deployment = tmp_path / "deployment.yaml"
    deployment.write_text("kubernetes.operator.cluster.health-check.checkpoint-progress.enabled: 'true'\n")

    found = {
        options: {row["id"] for row in json.loads(ckptsim(f"known-issues {job()} {options} --json").stdout)}
        for options in ("", f"--flink {deployment}")
    }

    assert "FLINK-34131" not in found[""]
    assert "FLINK-34131" in found[f"--flink {deployment}"]


def test_a_deployment_is_for_scenarios(ckptsim, tmp_path):
    done = ckptsim(f"known-issues http://127.0.0.1:1 --flink {tmp_path}/deployment.yaml")

    assert done.exit_code == 2
    assert "--flink: is for scenario files: the configuration of a real job is read from the job" in done.stderr


@pytest.mark.parametrize(("version", "is_told"), [("1.19", True), ("1.19.2", False), ("1.19.3", False)])
def test_a_simulated_defect_of_some_patch_releases_is_told(ckptsim, tmp_path, version, is_told):
    """With FLINK-37870 unaligned checkpoints are aligned ones, and 1.19 alone does not say whether the job has it."""
    file = tmp_path / "job.yaml"
    file.write_text(
        "version: 1\njob:\n  a: {source: {rate: 10/s, record: 1 kB}}\n  b: {input: {a: hash}, connector: kafka-exactly-once, commit: as-connector}\n"
        f"checkpoint: {{interval: 1 s, barriers: unaligned}}\ncluster: {{version: {version}}}\nrun: {{duration: 2 s}}\n"
    )
    done = ckptsim(f"run {file} --jobs 1")

    assert done.exit_code == 0, done.stderr
    assert ("whether FLINK-37870 applies depends on the patch release of 1.19: " in done.stderr) == is_told
    assert ("known defect FLINK-37870" in done.stderr) == (version == "1.19.2")

"""The catalogue of known defects: each entry has a source, a job that it matches, and one that it does not."""

import tomllib

import pytest

from sim.advice.cautions import new_defects
from sim.jobs.evidence.known_issues import KnownIssue, issues_of, known_issues, predicates
from sim.model.cluster import version_span
from sim.model.schema.study import loads
from sim.runtime.result import identity
from tests.places import DATA
from tests.scenarios import read_scenario

JOBS = tomllib.loads((DATA / "known-issues.toml").read_text())
ISSUES = {issue.id: issue for issue in known_issues()}
SMALLEST = """# What is known of this job?
version: 1
job:
  src:  {source: {rate: 100/s, record: 100 B}}
  map:  {input: {src: hash}, service: 1 us, state: {size: 1 MB}}
  sink: {input: {map: hash}, service: 1 us}
checkpoint: {interval: 10 s}
run: {duration: 1 min}
"""


def found(*changes):
    """Id -> whether it applies for certain, of the smallest job with these changes."""
    return {own.issue.id: own.applies for own in issues_of(loads(SMALLEST, overrides=changes).scenarios)}


def names(when):
    if isinstance(when, str):
        return {when}
    ((name, value),) = when.items()
    if name in ("all", "any", "not"):
        return set().union(*map(names, value if isinstance(value, list) else [value]))
    return {name}


def given(issue, version):
    """The change of the job that names a version of the component."""
    if issue.component == "flink":
        return [f"cluster.version={version}"]
    by_vertex = [change for change in JOBS[issue.id]["matches"] if ".connector=" in change]
    split = [change.partition(".connector=") for change in by_vertex]
    return [f"{key}.connector={{name: {name}, version: {version}}}" for key, _, name in split]


def test_there_are_enough():
    assert len(ISSUES) >= 60
    assert {*ISSUES} == {*JOBS}
    assert len(ISSUES) == len(known_issues())


@pytest.mark.parametrize("name", ISSUES)
def test_its_condition_matches_one_job_and_not_another(name):
    assert name in found(*JOBS[name]["matches"])
    assert name not in found(*JOBS[name]["other"])


@pytest.mark.parametrize(
    "name", [name for name, issue in ISSUES.items() if issue.fixed and issue.component != "flink-kubernetes-operator"]
)
def test_a_version_without_it_is_not_named(name):
    """The release that fixed it, and those behind."""
    for version in (*ISSUES[name].fixed, "99.0.0"):
        assert name not in found(*JOBS[name]["matches"], *given(ISSUES[name], version))


@pytest.mark.parametrize(
    "name", [name for name, issue in ISSUES.items() if issue.since and issue.component != "flink-kubernetes-operator"]
)
def test_a_version_with_it_is_named(name):
    """The first that has it; one long before has it not."""
    issue = ISSUES[name]

    assert name in found(*JOBS[name]["matches"], *given(issue, issue.since[0]))
    assert name not in found(*JOBS[name]["matches"], *given(issue, "0.0.1"))


def test_every_predicate_is_used():
    assert {*predicates()} == set().union(*(names(issue.when) for issue in ISSUES.values()))


@pytest.mark.parametrize("issue", ISSUES.values(), ids=lambda issue: issue.id)
def test_an_entry_says_what_happens_and_what_to_do(issue):
    assert all((issue.title, issue.way_out, issue.condition, issue.evidence))
    assert issue.happens.endswith(".")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"when": "unalinged"}, "is not a condition"),
        ({"when": {"all": []}}, "is not a condition"),
        ({"when": {"backend": ""}}, "is not a condition"),
        ({"when": {"failure": "x"}}, "is not a condition"),
        ({"consequence": "bad"}, "consequence"),
        ({"colour": "red"}, "colour"),
        ({"source": "somewhere"}, "source"),
    ],
)
def test_a_mistake_in_an_entry_is_an_error(change, message):
    entry = ISSUES["FLINK-27789"].model_dump()

    with pytest.raises(ValueError, match=message):
        KnownIssue(**entry | change)


@pytest.mark.parametrize(
    ("sink", "first", "second"),
    [
        ("connector=delta", True, True),
        ("connector=iceberg-v2", True, None),
        ("connector=paimon", None, None),
        ("connector=iceberg-v1", None, None),
        ("connector=hudi", None, None),
        ("commit={committer: global}", False, False),
    ],
)
def test_defects_of_sink_v2_are_not_those_of_committers_of_their_own(sink, first, second):
    """Paimon, Hudi and Iceberg's FlinkSink do not run CommitterOperator; without a connector nobody knows."""
    own = [f"job.sink.{sink}", *["job.sink.commit=as-connector"] * sink.startswith("connector")]
    issues = found("job.src.source.records=10000", "faults=[{kill: map, at: 30 s}]", "cluster.version=1.18.1", *own)

    assert (issues.get("FLINK-25920"), issues.get("FLINK-38614")) == (first, second)


def test_versions_that_are_not_known_may_have_it():
    """An entry for 1.19.2 up to 1.19.3 and 1.20.1 up to 1.20.2."""
    job = ["checkpoint.barriers=unaligned", "job.sink.connector=file-sink", "job.sink.commit=as-connector"]
    versions = [
        "1.18.1",
        "1.19.1",
        "1.19.2",
        "1.19.3",
        "1.20.1",
        "1.20",
        "1.20.2",
        "1.20.1-vvr-8",
        "2.0.0",
        "2.0.1",
        "2.3.0",
        "2.0.0-rc1",
    ]
    of = {version: found(*job, f"cluster.version={version}").get("FLINK-37870") for version in versions}

    expected = {"1.19.2": True, "1.20.1": True, "2.0.0": True, "1.20": False, "1.20.1-vvr-8": False}
    assert expected == {version: applies for version, applies in of.items() if applies is not None}
    assert found(*job)["FLINK-37870"] is False
    assert found(*job, "cluster.profile=1.20")["FLINK-37870"] is False


def test_an_event_that_is_not_in_a_scenario_may_happen():
    job = ["job.sink.connector={name: hudi, version: 1.1.0}", "job.sink.commit=as-connector"]

    assert found(*job)["hudi#19215"] is False
    for fault in ("{commit: sink, at: 30 s}", "{job-manager: down-for 10 s, at: 30 s}"):
        assert found(*job, f"faults=[{fault}]")["hudi#19215"] is True
    # a region fails over, which is not what the issue is about
    assert found(*job, "faults=[{kill: map, at: 30 s}]")["hudi#19215"] is False
    assert "hudi#19215" not in found("faults=[{job-manager: down-for 10 s, at: 30 s}]")


def test_a_connector_is_known_by_the_name_of_its_operators():
    """As an import has them."""
    text = SMALLEST.replace("sink:", "hoodie_stream_write-3:")

    assert "hudi#19215" in {own.issue.id for own in issues_of(loads(text).scenarios)}
    assert "hudi#19215" not in {own.issue.id for own in issues_of(loads(SMALLEST.replace("src", "hudi")).scenarios)}


def test_versions_are_in_order():
    ordered = [
        "0.9",
        "1.1.0-rc1",
        "1.1.0-rc2",
        "1.1.0",
        "1.1.1",
        "1.9.2",
        "1.9.3",
        "1.10.0",
        "1.11",
        "2.0-SNAPSHOT",
        "2.0.0",
    ]

    assert ordered == sorted(ordered, key=version_span)
    assert version_span("v1_20") == version_span("1.20.x") == version_span("1.20")
    assert version_span("3.2.0-1.19") == version_span("3.2.0")
    for text in ("", "x", "one.two", "1..2", "-1"):
        with pytest.raises(ValueError, match="is not a version"):
            version_span(text)


def test_an_advice_names_the_defects_that_its_setting_brings():
    """Those of unaligned barriers, for a job that is aligned today."""
    job = ["job.sink.commit=two-phase", "cluster.version=1.20.1"]
    today, advised = (
        read_scenario(SMALLEST, overrides=[*job, f"checkpoint.barriers={kind}"]) for kind in ("aligned", "unaligned")
    )
    (caution,) = new_defects(today, advised)

    assert "FLINK-37870 (slow)" in caution.text
    assert caution.short.startswith("new with this setting, ")
    assert "FLINK-37870 (slow)" in caution.short
    assert new_defects(advised, today) == []


HEALTH_CHECK = "kubernetes.operator.cluster.health-check.checkpoint-progress.enabled"
COMPRESSION = "execution.checkpointing.snapshot-compression"


def with_keys(**values):
    keys = ", ".join(f"{name}: {value}" for name, value in values.items())
    return f"flink={{{keys}}}"


@pytest.mark.parametrize(
    ("keys", "issue", "expected"),
    [
        ({HEALTH_CHECK: "true"}, "FLINK-34131", True),
        ({HEALTH_CHECK: "'true'"}, "FLINK-34131", True),
        ({HEALTH_CHECK: "false"}, "FLINK-34131", False),
        ({"metrics.latency.interval": "1 s"}, "FLINK-34131", False),
        ({"job.autoscaler.enabled": "true"}, "FLINK-34131", True),  # the operator runs it, and its check may be on
    ],
    ids=["on", "on, quoted", "off", "no operator", "autoscaler"],
)
def test_keys_that_are_written_and_not_modelled_are_conditions(keys, issue, expected):
    assert (issue in found(with_keys(**keys))) == expected


def test_the_reason_names_the_key():
    (match,) = [
        own
        for own in issues_of(loads(SMALLEST, overrides=[with_keys(**{HEALTH_CHECK: "true"})]).scenarios)
        if own.issue.id == "FLINK-34131"
    ]

    assert f"{HEALTH_CHECK} is set" in match.holding
    assert found() == found(with_keys(**{"metrics.latency.interval": "1 s"}))


def test_a_written_key_changes_no_result():
    """What a run is does not depend on keys that are not modelled."""
    plain, written = (
        read_scenario(SMALLEST, overrides=changes) for changes in ([], [with_keys(**{HEALTH_CHECK: "true"})])
    )

    assert identity(plain) == identity(written)


@pytest.mark.parametrize(("version", "applies"), [("1.15.1", True), ("1.15", False), ("1.15.3", None), ("2.0.0", None)])
def test_a_defect_of_a_connector_occurs_on_some_versions_of_flink(version, applies):
    """delta#467: only where Flink restores committables with wrong ids (FLINK-29509)."""
    sink = ["job.sink.connector={name: delta, version: 0.5.0}", "job.sink.commit=as-connector"]
    failure = ["faults=[{kill: map, at: 30 s}]", f"cluster.version={version}"]

    assert applies == found(*sink, *failure).get("delta#467")


@pytest.mark.parametrize(("connector", "applies"), [("iceberg-v2", True), ("iceberg-v1", False), ("hudi", False)])
def test_a_defect_of_sink_v2_spares_committers_of_their_own(connector, applies):
    """Hudi has a coordinator, and Iceberg's FlinkSink operators of its own."""
    changes = [
        f"job.sink.connector={connector}",
        "job.sink.commit=as-connector",
        "checkpoint.barriers=unaligned",
        "cluster.version=1.18.1",
    ]

    assert ("FLINK-36287" in found(*changes)) == applies

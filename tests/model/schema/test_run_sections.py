"""Sections of a run: instances, actions, residuals, backtests, recovery switches, and faults."""

import gzip
import math
from fractions import Fraction

import pandas as pd
import pytest

from sim.model.faults import (
    Fault,
    JobManagerDown,
    Kill,
    NetworkOutage,
    SlowTask,
    StorageOutage,
    TaskManagerLost,
    When,
)
from sim.model.job import Distribution
from sim.model.scenario import Action, Instances, OtherSettings
from sim.model.schema.history_file import section_of, tail_sentence
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.storage import Directories
from tests.model.schema.broken import ending

# `instances:` and `directories:`: jobs that begin from each other's snapshots, and where those lie.


TEXT = """# Is it read?
job:
  a: {source: {rate: 1k/s, record: 5 B}}
checkpoint: {interval: 5 s, num-retained: 3}
run: {duration: 50 s}
"""


def read(lines=""):
    return loads(TEXT + lines).scenarios


def test_defaults_are_one_job_with_flinks_paths():
    """Without the sections; and what a section leaves out is Flink's."""
    (scenario,) = read()

    assert (Instances(), Directories()) == (scenario.instances, scenario.directories)
    assert Instances(2, "no-claim") == read("instances: {count: 2}\n")[0].instances


@pytest.mark.parametrize("claim", ["", ", claim: no-claim"])
def test_a_changelog_takes_no_full_checkpoint(claim):
    """Flink refuses the first checkpoint after such a restore ("does not support enforcing a full snapshot")."""
    text = TEXT.replace("checkpoint:", "  b: {input: {a: hash}, state: {size: 1 MB, changelog: on}}\ncheckpoint:")
    with pytest.raises(ScenarioError, match="no-claim requires a full checkpoint"):
        loads(f"{text}instances: {{count: 2{claim}}}\n")

    assert loads(f"{text}instances: {{count: 2, claim: claim}}\n").scenarios[0].instances.claim == "claim"


# How a job ends and what is asked of it meanwhile, as written and as read.


S = 10**9


def read_actions(text):
    return list(loads(text, name="s").scenarios)


def test_actions_stand_in_the_order_of_time():
    text = ending(
        "actions: [{stop: drain, format: native, at: 27 s}, {savepoint: canonical, at: 22 s}, {savepoint: native, at: 9 s}]\n"
    )

    assert (Action(9 * S, "native"), Action(22 * S, "canonical"), Action(27 * S, "native", "drain")) == read_actions(
        text
    )[0].actions


# `residuals:` is read in its unit, and checked against the job.


TINY = """\
# Is it true?
version: 1
job:
  source: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
  sink: {input: {source: hash}, parallelism: 2}
checkpoint: {interval: 1 s}
run: {duration: 3 s}
"""
SECTION = """\
residuals:
  checkpoints: 3
  unit: 1 ms
  of:
    source: {scheduling: [[0, 5, 200]], acknowledgement: [[0, 0, 7], [1, 1, 1]]}
    sink: {async: [[30, 0, 900]]}
"""


def test_what_tails_rest_on_is_said():
    with_residuals, without = (loads(text).scenarios[0].residuals for text in (TINY + SECTION, TINY))

    assert (
        tail_sentence(with_residuals) == "tails are drawn from the residuals of 3 checkpoints of the job's own history"
    )
    assert tail_sentence(without) == ""


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        (("    sink:", "    snk:"), "residuals.of.snk", "there is no vertex 'snk' (did you mean 'sink'?)"),
        (("async: [[30", "scheduling: [[30"), "residuals.of.sink.scheduling", "only sources are called"),
        (
            ("[30, 0, 900]", "[30, 0]"),
            "residuals.of.sink.async",
            "has 2 numbers for subtask 0: expected one for each of 3 checkpoints",
        ),
        (("[[30, 0, 900]]", "[]"), "residuals.of.sink.async", "is empty"),
    ],
)
def test_mistakes_are_told_at_their_place(change, path, message):
    with pytest.raises(ScenarioError) as refused:
        loads(TINY + SECTION.replace(*change, 1))
    problem = refused.value.problems[0]

    assert problem.path.startswith(path)
    assert message in f"{problem.path} {problem.message}"
    assert problem.line


# `backtest:` is checked as every section is, and no run depends on it.


BACKTESTED = """\
# Is it true?
version: 1
job:
  source: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
checkpoint: {interval: 1 s}
run: {duration: 3 s}
"""
BACKTEST = """\
backtest:
  runs: 3
  simulated: 90 s
  longest: [2 s, 1 s]
  end-to-end:
    observed: {p50: 400 ms, p90: 1 s, max: 2 s, count: 20}
    predicted: {p50: 390 ms, p90: 410 ms, max: 420 ms, count: 60}
    off: [p90]
    cause: unknown
  async: {vertex: source, observed: {p50: 1 ms, p90: 1 ms, max: 1 ms, count: 20}, predicted: {count: 0}}
  throughput: {vertex: source, observed: {p50: 400/s, p90: 400/s, max: 400/s, count: 1}, predicted: {count: 0}}
"""


def test_what_it_says():
    found = loads(BACKTESTED + BACKTEST).backtest

    assert (found.runs, found.simulated_ns, found.longest_ms, found.checkpoints) == (
        3,
        90 * 10**9,
        (2000.0, 1000.0),
        20,
    )
    assert [row.quantity for row in found.compared] == ["end-to-end", "async", "throughput"]
    assert [row.observed.p50 for row in found.compared] == [400.0, 1.0, 400.0]
    assert (found.off[0].off, found.off[0].agreement("p90")) == (("p90",), 0.41)


def test_what_it_says_of_other_settings():
    """A file that is older says nothing; a level that is left out is unknown."""
    found = loads(BACKTESTED + BACKTEST + "  other-settings: {p50: 1.5}\n").backtest

    assert OtherSettings(1.5, math.inf) == found.other_settings
    assert None is loads(BACKTESTED + BACKTEST).backtest.other_settings
    assert {"p50": Fraction("1.5")} == section_of(found)["other-settings"]


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        (("p90: 1 s", "p90: 1 min"), "backtest.end-to-end.observed", "expected p50 <= p90 <= max"),
        (("p50: 400 ms, ", ""), "backtest.end-to-end.observed", "write p50, p90, max and count"),
        (("longest: [2 s, 1 s]", "longest: [1 s, 2 s]"), "backtest.longest", "the longest duration first"),
        (("runs: 3", "runs: 3\n  other-settings: {p50: 0.5}"), "backtest.other-settings", "factors of 1 and more"),
        (("max: 400/s", "max: unlimited"), "backtest.throughput.observed", "expected p50 <= p90 <= max"),
    ],
)
def test_mistakes_of_backtests_are_told_at_their_place(change, path, message):
    with pytest.raises(ScenarioError) as refused:
        loads(BACKTESTED + BACKTEST.replace(*change, 1))
    (problem,) = refused.value.problems

    assert path in problem.path
    assert message in problem.message
    assert problem.line


# `checkpoint: {recover-output-on-downstream: ..., during-recovery: ...}` and Flink's keys for them.


SWITCHED = """# Who runs when?
version: 1
job:
  src: {{source: {{rate: 100/s, record: 1 kB}}}}
  op: {{input: {{src: hash}}}}
checkpoint: {{interval: 5 s{options}}}
run: {{duration: 10 s}}
{rest}
"""


def study(options="", rest=""):
    return loads(SWITCHED.format(options=options, rest=rest), name="x")


def switches(study):
    options = study.scenarios[0].checkpoint
    return options.recover_output_on_downstream, options.during_recovery


def test_the_second_needs_the_first():
    given = study(", during-recovery: true")

    assert switches(given) == (False, False)
    assert [
        "has no effect without recover-output-on-downstream: true" in str(warning) for warning in given.warnings
    ] == [True]


# What goes wrong and what is done about it, from the file to the model.


BASE = """\
# What then?
job:
  a: {source: {rate: 1k/s, record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, service: 10 us, parallelism: 2}
checkpoint: {interval: 5 s}
cluster: {placement: isolated}
run: {duration: 60 s}
"""


def scenario(text, **options):
    study = loads(BASE + text, **options)
    return study.scenarios[0]


def faults(*lines, **options):
    return scenario("faults:\n" + "".join(f"- {{{line}}}\n" for line in lines), **options).faults


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ('kill: "b[1]"', Kill("b", 1)),
        ("kill: b", Kill("b")),
        ("kill: random-task", Kill()),
        ("kill: task-manager", TaskManagerLost()),
        ("task-manager: 2", TaskManagerLost(2)),
        ("task-manager: random, silent: true", TaskManagerLost(silent=True)),
        ("job-manager: down-for 30 s", JobManagerDown(30 * S)),
        ("storage: outage, lasts: 2 s", StorageOutage(2 * S)),
        ("network: 3, lasts: 2 s", NetworkOutage(2 * S, 3)),
        ('slow: "a[0]", factor: 5, lasts: 2 s', SlowTask("a", 5, 2 * S, 0)),
        ("slow: a, factor: 5", SlowTask("a", 5)),
    ],
)
def test_every_fault_has_its_line(line, target):
    assert (Fault(target, When((95 * S,))),) == faults(f"{line}, at: 95 s")


@pytest.mark.parametrize(
    ("every", "law"),
    [
        ("10 min", Distribution(600 * S)),
        ("{exponential: 1 h}", Distribution(3600 * S, "exponential")),
        ("{lognormal: {mean: 1 h, cv: 2}}", Distribution(3600 * S, "lognormal", cv=2.0)),
    ],
)
def test_faults_come_by_a_law(every, law):
    assert (Fault(Kill(), When(every=law)),) == faults(f"kill: random-task, every: {every}")


def test_a_trace_of_times_counts_from_its_earliest_row(tmp_path):
    """Rows are chosen by the value of another column, and sorted."""
    (tmp_path / "kills.csv").write_text("chk,kill_epoch_s\n10000,1627732319\n30000,1627732029\n10000,1627732019\n")
    line = "kill: task-manager, trace: kills.csv, column: kill_epoch_s, where: {chk: 10000}, at: 5 s"

    assert (Fault(TaskManagerLost(), When((5 * S, 305 * S))),) == faults(line, folder=tmp_path)


@pytest.mark.parametrize(("begin", "at_s"), [("0 s", (0, 10, 310)), ("10 s", (0, 300)), ("11 s", (299,)), ("1 h", ())])
def test_a_run_begins_within_a_trace_of_faults(tmp_path, begin, at_s):
    """Faults before it are over; a window without any is a world, too."""
    (tmp_path / "kills.csv").write_text("t\n1010\n1000\n1310\n")
    expected = (Fault(Kill("b"), When(tuple(at * S for at in at_s))),) if at_s else ()

    assert expected == faults(f"kill: b, trace: kills.csv, column: t, from: {begin}", folder=tmp_path)


def test_a_trace_of_times_between_faults_and_of_durations(tmp_path):
    """In the unit that is said; Parquet and compressed CSV alike."""
    rows = pd.DataFrame({"gap": [0, 1200, 600], "lasts": [500, 0, 250]})
    rows.to_parquet(tmp_path / "outages.parquet")
    with gzip.open(tmp_path / "outages.csv.gz", "wt") as file:
        rows.to_csv(file, index=False)
    line = "storage: outage, trace: {}, column: gap, between: true, unit: 1 ms, lasts-column: lasts"
    expected = (Fault(StorageOutage(S // 2), When((0,))), Fault(StorageOutage(S // 4), When((1800 * S // 1000,))))

    assert expected == faults(line.format("outages.parquet"), folder=tmp_path)
    assert expected == faults(line.format("outages.csv.gz"), folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t\n1\nsoon\n", "kills.csv:3: 'soon' is not a time: the other rows have seconds"),
        ("when\n1\n", "has no column 't'; it has when"),
        ("t\n", "has no faults in column 't'"),
    ],
)
def test_a_trace_that_cannot_be_read_says_why(tmp_path, text, message):
    (tmp_path / "kills.csv").write_text(text)

    with pytest.raises(ScenarioError, match=message):
        faults("kill: b, trace: kills.csv, column: t", folder=tmp_path)


def test_subtasks_and_task_managers_may_come_with_rescaling():
    """The highest index is that of the largest parallelism there is in the course of the run."""
    rescale = "rescale:\n- {at: 20 s, parallelism: {b: 4}}\n- {at: 40 s, parallelism: {b: 2}}\n"
    given = scenario(rescale + 'faults: [{kill: "b[3]", at: 25 s}, {task-manager: 5, at: 30 s}]\n').faults

    assert [Kill("b", 3), TaskManagerLost(5)] == [fault.what for fault in given]

    with pytest.raises(ScenarioError, match=r"'b' has 4 subtasks, counted from 0: there is no b\[4\]"):
        scenario(rescale + 'faults: [{kill: "b[4]", at: 25 s}]\n')

"""Trials, their files and their bounds, number by number."""

from types import SimpleNamespace

import pytest

from sim.advice.answer import watch
from sim.advice.cautions import cautions, sinks_without_unaligned, unaligned_precondition
from sim.advice.configuration import KeyChange, patch
from sim.advice.horizon import WINDOW_NS, load_worlds
from sim.advice.job import prepare_bench
from sim.advice.judgement import Limits
from sim.advice.levers import more_subtasks
from sim.advice.requirements import _OPERATORS, ParsedQuantity, _faster, _rates, quantities
from sim.advice.settings import make_candidate, protocols
from sim.advice.trials import FAILURE, LONG, TASK, UNDISTURBED, Bench
from sim.model.schema.study import loads
from sim.model.schema.text import Reading, compose
from tests.advice.levers.test_levers import JOB as FORWARDED
from tests.advice.levers.test_levers import situation
from tests.advice.made_up import JOB
from tests.scenarios import read_scenario

S = 10**9


def bench_of(job, **options):
    return Bench(job, {}, **options)


def trials_of(bench, interval_s):
    own = make_candidate(bench.load({}), interval_s * S, protocols()[0])
    kinds = (UNDISTURBED, FAILURE, LONG)
    return {trial.kind: trial.point for trial in bench.trials(own, kinds)}


@pytest.mark.parametrize(
    ("interval_s", "steady", "failure_at", "failing", "long"),
    [
        (10, "2 min", "69 s", "271 s", "1060 s"),
        (30, "2 min", "87 s", "289 s", "51 min"),
        (60, "3 min", "114 s", "316 s", "101 min"),
        (600, "21 min", "19 min", "1342 s", "121 min"),
        (7, "2 min", "69.3 s", "271.3 s", "760 s"),
        (7200, "241 min", "228 min", "13882 s", "241 min"),
    ],
)
def test_how_long_trials_take(job, interval_s, steady, failure_at, failing, long):
    """A minute to settle and two intervals, or a minute; a failure late in the interval behind it; a hundred intervals, or two hours."""
    points = trials_of(bench_of(job), interval_s)

    changed = {"run.duration": steady, "run.warmup": "1 min", "run.until": "duration", "faults": []}
    assert changed == {key: points[UNDISTURBED][key] for key in changed}
    assert ([{"kill": "task-manager", "at": failure_at}], "0 s", "caught-up", failing) == (
        points[FAILURE]["faults"],
        points[FAILURE]["run.warmup"],
        points[FAILURE]["run.until"],
        points[FAILURE]["run.duration"],
    )
    task = trials_of(bench_of(job, failure=TASK), interval_s)
    assert [{"kill": "random-task", "at": failure_at}] == task[FAILURE]["faults"]
    assert (long, "1 min", []) == (points[LONG]["run.duration"], points[LONG]["run.warmup"], points[LONG]["faults"])


@pytest.mark.parametrize(
    ("interval_s", "steady", "failure_at", "first_trigger", "meets"),
    [
        (10, "5 min", "2 min", "1 s", True),
        (30, "5 min", "2 min", "3 s", True),
        (60, "5 min", "2 min", "6 s", True),
        (120, "5 min", "228 s", None, True),
        (180, "7 min", "342 s", None, False),
    ],
)
def test_all_settings_meet_the_same_part_of_a_load_that_varies(
    job, interval_s, steady, failure_at, first_trigger, meets
):
    """The load is largest from 2 min to 4 min: settings fail then, late in an interval, unless their second checkpoint comes later."""
    (job.parent / "load.csv").write_text("time,rate\n0,200\n120,300\n240,100\n")
    rate = {"job.source.source.rate": {"trace": "load.csv", "column": "rate"}}
    bench = Bench(job, rate)
    points = trials_of(bench, interval_s)

    assert (steady, failure_at) == (points[UNDISTURBED]["run.duration"], points[FAILURE]["faults"][0]["at"])
    assert first_trigger == points[FAILURE].get("overheads.first-trigger")
    older = trials_of(Bench(job, rate | {"cluster.version": "1.18.1"}), interval_s)[FAILURE]
    assert (failure_at, None) == (older["faults"][0]["at"], older.get("overheads.first-trigger"))
    assert meets == bench.meets_whole_load(make_candidate(bench.load({}), interval_s * S, protocols()[0]))
    assert bench_of(job).meets_whole_load(make_candidate(bench.load({}), interval_s * S, protocols()[0]))
    assert Bench(job, rate | {"run.duration": "8 min"}).varying[""].until_ns == 480 * S


def test_a_load_is_followed_for_20_min(job):
    """It varies after that, too."""
    steps = "\n".join(f"{minute * 60},{100 + minute}" for minute in range(30))
    (job.parent / "load.csv").write_text(f"time,rate\n{steps}\n")
    bench = Bench(job, {"job.source.source.rate": {"trace": "load.csv", "column": "rate"}})

    assert list(bench.varying.values()) == [(1200 * S, 1140 * S, False)]
    assert Bench(job, bench.common, worlds={"a": {}, "b": {}}).varying["b"] == (600 * S, 540 * S, False)


def test_a_trial_waits_for_the_recovery_as_long_as_its_limit_asks(job):
    """Three minutes at least, and the 22 s in which a lost task manager leaves no slots; a failing task leaves its own."""
    waits = [
        trials_of(bench_of(job, patience_ns=patience_s * S, failure=failure), 30)[FAILURE]["run.duration"]
        for patience_s, failure in ((0, TASK), (179, TASK), (200, TASK), (200, "task-manager"))
    ]

    assert waits == ["267 s", "267 s", "287 s", "309 s"]
    assert [prepare_bench(job, (), (), recovery_ms=ms).patience_ns / 1e9 for ms in (200_000.0, None)] == [250.0, 180.0]


def test_worlds_and_further_changes_are_part_of_a_trial(job):
    """What is further overrides the world, and the setting overrides all."""
    bench = bench_of(
        job, worlds={"busy": {"job.source.source.rate": "300/s", "checkpoint.min-pause": "1 s"}, "usual": {}}
    )
    own = make_candidate(bench.load({}), 10 * S, protocols()[0])
    found = {
        (trial.world, trial.kind): trial.point
        for trial in bench.trials(own, extra={"checkpoint.min-pause": "2 s", "checkpoint.interval": "7 s"})
    }

    assert {("busy", UNDISTURBED), ("busy", FAILURE), ("usual", UNDISTURBED), ("usual", FAILURE)} == set(found)
    assert tuple(
        found["busy", FAILURE][key] for key in ("job.source.source.rate", "checkpoint.min-pause", "checkpoint.interval")
    ) == ("300/s", "2 s", "10 s")
    assert "job.source.source.rate" not in found["usual", FAILURE]
    assert bench.scenario(next(bench.trials(own))).axes == (
        ("world", "busy"),
        ("interval", "10 s"),
        ("protocol", "aligned"),
        ("trial", UNDISTURBED),
    )


@pytest.mark.parametrize(("minutes", "worlds"), [(19, [""]), (20, ["busiest", "usual"]), (60, ["busiest", "usual"])])
def test_a_load_of_two_windows_has_a_busy_and_a_usual_one(tmp_path, minutes, worlds):
    """Ten minutes each; from the middle of one to the middle of the next."""
    rows = [f"{60 * i},{100 + i}" for i in range(minutes + 1)]
    (tmp_path / "load.csv").write_text("time,rate\n" + "\n".join(rows) + "\n")
    (tmp_path / "job.yaml").write_text(JOB.replace("rate: 200/s", "rate: {trace: load.csv, column: rate}"))
    text = (tmp_path / "job.yaml").read_text()
    _, found = load_worlds(
        tmp_path / "job.yaml", compose(text, Reading("job")), read_scenario(text, folder=tmp_path), ()
    )

    assert worlds == list(found)
    if len(worlds) > 1:
        starts = [world["job.source.source.rate.from"] for world in found.values()]
        assert {20: ["10 min", "5 min"], 60: ["50 min", "25 min"]}[minutes] == starts
        assert 600 * S == WINDOW_NS


def test_a_patch_of_a_deployment_line_by_line():
    found = [KeyChange("execution.checkpointing.interval", "10 s", "5 s"), KeyChange("x", None, "true")]

    assert patch(found, back=False, others={"parallelism": "4"}, warnings=["Caution: slow."]).splitlines() == [
        "# Caution: slow.",
        "# kubectl patch flinkdeployment NAME --type merge --patch-file advised.yaml",
        "# Not in this patch, parallelism: 4",
        "spec:",
        "  job:",
        "    upgradeMode: last-state",
        "  flinkConfiguration:",
        '    execution.checkpointing.interval: "5 s"',
        '    x: "true"',
    ]
    assert patch(found, back=True, others={}).splitlines()[-2:] == [
        '    execution.checkpointing.interval: "10 s"',
        "    x: null",
    ]


def test_ranges_to_watch():
    """Half a second within a factor of 1.6; five per cent less than 400/s is no noise."""
    chosen = SimpleNamespace(
        checkpoint_p50_ms=500.0,
        checkpoint_p90_ms=500.0,
        checkpoint_ms=500.0,
        longest_ms=500.0,
        checkpointed_bytes=1e6,
        per_second=400.0,
    )
    own = watch(chosen, Limits(), None)

    assert pytest.approx(
        (
            own.factor,
            own.p50_ms[0],
            own.p50_ms[1],
            own.checkpointed_bytes,
            own.per_second,
            own.roll_back_below_per_second,
            own.roll_back_above_p50_ms,
        )
    ) == (1.6, 500 / 1.6, 800.0, 1e6, 400.0, 380.0, 800.0)
    assert own.watch_text() == "p50 312 ms to 800 ms, 1 MB each, 400/s served"
    assert own.roll_back_text() == "p50 of 10 > 800 ms, or under 380/s"
    assert (
        watch(chosen, Limits(), None, keeps_up=True).roll_back_text()
        == "p50 of 10 > 800 ms, or under 380/s and lag grows"
    )


def test_what_is_needed_makes_rates_larger_and_times_shorter():
    found = {
        "storage.file-latency": ParsedQuantity.parse("20 ms"),
        "storage.bandwidth": ParsedQuantity.parse("100 MB/s"),
    }

    assert _faster(found, 4.0) == {"storage.file-latency": "5 ms", "storage.bandwidth": "400 MB/s"}
    assert _rates(found, 2.25) == " (220 MB/s instead of 100 MB/s)"
    assert _rates({"storage.file-latency": found["storage.file-latency"]}, 2.25) == ""
    assert _faster({"x": ParsedQuantity.parse("1 ns")}, 64.0)["x"] == "1 ns"
    nested = {"storage": {"bandwidth": "1 MB/s", "nic": "unlimited", "dfs": {"latency": "2 ms"}, "other": "1 s"}}
    keys = [key for key, _ in quantities(nested, ("top",), ("bandwidth", "nic", "latency"))]
    assert keys == ["top.storage.bandwidth", "top.storage.dfs.latency"]
    assert list(quantities(None, (), ("x",))) == []
    job = {
        "win": {"service": "1 ms", "window": {"tumbling": "1 h", "fire": "1 ms"}, "snapshot": {"pre-barrier": "1 s"}}
    }
    assert [key for key, _ in quantities(job, ("job",), _OPERATORS)] == [
        "job.win.service",
        "job.win.window.fire",
        "job.win.snapshot.pre-barrier",
    ]


@pytest.mark.parametrize(
    ("factor", "parallelism"), [(2, {"count": 4, "sink": 4}), (64, {"count": 128, "sink": 128}), (65, {})]
)
def test_more_subtasks_up_to_the_key_groups(factor, parallelism):
    """128 of them; whoever is forwarded to has as many."""
    point = more_subtasks(situation(), "count", factor)

    assert parallelism == {key.split(".")[1]: value for key, value in point.items() if key.endswith("parallelism")}
    assert more_subtasks(situation(FORWARDED.replace("rate: 1k/s", "rate-per-subtask: 1k/s")), "source", 2) == {}


def test_cautions_before_a_setting_is_applied():
    """They are about transactions always, about overtaking with barriers that do; questions first."""
    job = read_scenario(FORWARDED.replace("count: forward}", "count: forward}, connector: kafka-exactly-once"))
    aligned, unaligned = (cautions(job, protocols()[place], []) for place in (0, -1))

    assert [own.short for own in aligned] == ["transaction.timeout.ms: above interval and downtime"]
    assert [own.short for own in unaligned if own not in aligned] == ["stays aligned: count -> sink (forward)"]
    assert (
        "Flink keeps barriers aligned on edges that are pointwise or broadcast: count -> sink (forward). So does the simulation."
        in {own.text for own in unaligned}
    )
    assert aligned[0].text.endswith(
        "the longest downtime (transaction.timeout.ms, 1 h by KafkaSink; brokers allow transaction.max.timeout.ms, 15 min)."
    )
    unknown = cautions(read_scenario(FORWARDED), protocols()[-1], [])
    assert [own.is_question for own in unknown] == [True, False]
    inside = loads(FORWARDED.replace("count: forward}", "count: forward}, connector: file-sink-compaction")).scenarios[
        0
    ]
    assert "unaligned needs Flink 1.19.3, 1.20.2 or 2.0.1" in " ".join(
        own.short for own in cautions(inside, protocols()[-1], [])
    )
    assert (
        unaligned_precondition(read_scenario(FORWARDED), protocols()[-1]) == "'sink' is not Iceberg's FlinkSink or Hudi"
    )


def test_files_of_tables_that_nothing_judges_are_named():
    of_table, of_kafka_sink = (
        cautions(
            read_scenario(FORWARDED.replace("count: forward}", f"count: forward}}, connector: {name}")),
            protocols()[0],
            [],
        )
        for name in ("iceberg-v1", "kafka-at-least-once")
    )

    assert [own.short for own in of_table] == ["the cost of many small files of the table is not judged"]
    assert "a manifest, a manifest list and a table metadata file to the table" in of_table[0].text
    assert of_kafka_sink == []


def test_refusals_say_what_to_change_first():
    text = FORWARDED.replace("count: forward}", "count: forward}, connector: iceberg-v1")
    (aligned,), (now,) = (
        sinks_without_unaligned(read_scenario(own))
        for own in (text, text.replace("10 s}", "10 s, barriers: unaligned}"))
    )

    assert now.text == f"{aligned.text} Today's setting is unaligned: change this first."
    assert aligned.text.endswith("Instead: IcebergSink (iceberg-v2).")
    assert aligned.short == "unaligned not tried: Iceberg's FlinkSink loses records"
    assert "apache/iceberg#15846" in aligned.source
    assert sinks_without_unaligned(read_scenario(FORWARDED)) == []

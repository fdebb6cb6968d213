"""What differs between two scenarios: options with which they would run otherwise."""

import math
from pathlib import Path

import pandas as pd
import pytest

from sim.studies.differences import input_differences, side_of
from sim.studies.effects import leading, quantities, unlike_failures_sentence

JOB = """\
# Which inputs differ?
version: 1
job:
  src: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
  map: {input: {src: hash}, service: 1 ms, state: {size: 1 MB}, parallelism: 2}
  sink: {input: {map: hash}, service: 1 ms, parallelism: 2}
checkpoint: {interval: 1 s}
storage: {bandwidth: 100 MB/s}
run: {duration: 3 s}
"""


def differences(*changes, b=JOB):
    return input_differences(side_of("a", JOB, Path()), side_of("b", b, Path(), changes), 2)


def test_what_means_the_same_is_no_difference():
    """Another unit, a default that is written, and a key of Flink say the same."""
    same = JOB.replace("interval: 1 s", "timeout: 600 s").replace(
        "run:", "flink: {execution.checkpointing.interval: 1000 ms}\nrun:"
    )
    found = differences(b=same)

    assert found.changes == ()


def test_an_option_has_both_values_and_flinks_key():
    """A value that is not written has its default."""
    found = differences("checkpoint.min-pause=500 ms", "job.src.source.rate=300/s")

    assert [(own.key, own.before_text, own.after_text, own.flink, own.kind) for own in found.changes] == [
        ("job.src.source.rate", "200/s", "300/s", (), "load"),
        ("checkpoint.min-pause", "(0 s)", "500 ms", ("execution.checkpointing.min-pause",), "interval"),
    ]


def test_options_that_exclude_each_other_both_differ():
    """With an object store and a bandwidth of flat storage neither side is a scenario."""
    found = differences(b=JOB.replace("{bandwidth: 100 MB/s}", "{object-store: {latency: 50 ms}}"))

    assert [own.key for own in found.changes] == ["storage.bandwidth", "storage.object-store"]


def test_an_option_that_only_counts_beside_another_is_a_difference():
    """Incremental snapshots mean nothing without a backend that keeps files."""
    found = differences("checkpoint.incremental=true", "job.map.state.backend=rocksdb")

    assert {"checkpoint.incremental", "job.map.state.backend"} == {own.key for own in found.changes}


def test_a_vertex_that_is_new_comes_with_the_edges_to_it():
    """A vertex between others is added, and the vertex behind it reads it."""
    after = JOB.replace(
        "sink: {input: {map: hash}",
        "out: {input: {map: hash}, service: 1 ms, parallelism: 2}\n  sink: {input: {out: hash}",
    )
    found = differences(b=after)

    assert found.added == ("out",)
    assert {"job.out", "job.sink.input.map", "job.sink.input.out"} == {own.key for own in found.changes}


def test_both_run_alike():
    """The longer time and one seed: how long a scenario runs is no input of its job."""
    found = differences("run.duration=9 s", "run.seed=7")

    assert found.changes == ()
    assert found.before.run == found.after.run
    assert found.before.run.duration_ns == 9_000_000_000
    assert found.runs == "run.duration: 3 s and 9 s, both run with 9 s; run.seed: 1 and 7, both run with 1"


def test_files_of_both_folders_are_read(tmp_path):
    """Equal traces in two folders are one load; another content is another one."""
    for name, rate in (("a", 200), ("b", 200), ("c", 300)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "day.csv").write_text(f"epoch_s,rate\n0,{rate}\n10,{rate}\n")
    text = JOB.replace("200/s", "{trace: day.csv, column: rate}")
    same, other = (
        input_differences(side_of("a", text, tmp_path / "a"), side_of(name, text, tmp_path / name), 1)
        for name in ("b", "c")
    )

    assert same.changes == ()
    assert [(own.key, own.after_text) for own in other.changes] == [
        ("job.src.source.rate", "{trace: day.csv, column: rate}")
    ]


ROW = {
    "status": "ok",
    "nothing": "",
    "unfinished": "",
    "completed": 50,
    "violations": 0,
    "job_status": "RUNNING",
    "failure_kinds": "",
}


def rows(sides, column="end_to_end_p50_ms", **others):
    return pd.DataFrame(
        [
            {**ROW, "side": side, "replication": i, column: value, **(others if side == "B" else {})}
            for side, values in sides.items()
            for i, value in enumerate(values)
        ]
    )


def of(found, column="end_to_end_p50_ms"):
    return next(own for own in found if own.column == column)


def test_differences_are_of_pairs():
    """A large spread between seeds is none of the difference: 100 -> 110 and 900 -> 930 differ by 20 ± t(1) * 10."""
    found = of(quantities(rows({"A": [100.0, 900.0], "B": [110.0, 930.0]})))

    assert (found.before, found.after, found.change.value) == (500.0, 520.0, 20.0)
    assert pytest.approx(12.706 * 10, rel=1e-3) == found.change.half_width
    assert not found.change.is_sure


def test_a_run_that_did_not_end_gives_a_bound():
    """B took longer than was seen: its value and the change are lower bounds."""
    found = of(quantities(rows({"A": [100.0, 100.0], "B": [300.0, 300.0]}, unfinished="end_to_end_p50_ms")))

    assert found.sides_text() == ("100 ms", "> 300 ms")
    assert found.effect_text() == "> +200 ms"


def test_a_percentile_needs_its_sample():
    """The 99th percentile of 50 checkpoints is none."""
    found = quantities(rows({"A": [1.0, 2.0], "B": [3.0, 4.0]}, "end_to_end_p99_ms"))

    assert "end_to_end_p99_ms" not in [own.column for own in found]


def test_a_failed_run_leaves_the_difference_unknown():
    """Its seed has no pair."""
    broken = rows({"A": [100.0, 200.0], "B": [110.0, 210.0]})
    broken.loc[3, "status"] = "error"

    assert math.isnan(of(quantities(broken)).change.value)


def test_what_failures_cost_is_compared_between_failures_of_one_cause():
    """A lost TaskManager beside a failed task: both values, no change; if one failure restarts fewer tasks, that is its effect."""
    kinds = {
        "a": "1 task (all tasks restart)",
        "b": "1 task (some tasks restart)",
        "c": "3 task-manager (all tasks restart)",
    }
    sides = {"A": [100.0, 110.0], "B": [300.0, 320.0]}
    cause, extent, same = (
        rows(sides, "caught_up_ms").assign(failure_kinds=[kinds["a"]] * 2 + [kinds[b]] * 2) for b in "cba"
    )

    assert (of(quantities(cause), "caught_up_ms").text, leading(quantities(cause))) == (
        "time until caught up after a failure: 105 ms -> 310 ms",
        None,
    )
    assert unlike_failures_sentence(cause).endswith(
        "A has 2 x task (all tasks restart); B has 6 x task-manager (all tasks restart)"
    )
    assert of(quantities(extent), "caught_up_ms").change.value == 205.0
    assert "B has 2 x task (some tasks restart)" in unlike_failures_sentence(extent)
    assert unlike_failures_sentence(same) == ""


def test_what_leads_changes_surely():
    """A change within the spread of the seeds leads nothing."""
    noisy = quantities(rows({"A": [100.0, 200.0, 300.0], "B": [150.0, 150.0, 330.0]}))
    sure = quantities(rows({"A": [100.0, 200.0, 300.0], "B": [150.0, 250.0, 350.0]}))

    assert leading(noisy) is None
    assert leading(sure).column == "end_to_end_p50_ms"

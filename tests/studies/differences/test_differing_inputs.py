"""What differs between two scenarios: options with which they would run otherwise."""

from pathlib import Path

from sim.studies.differences import input_differences, side_of

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

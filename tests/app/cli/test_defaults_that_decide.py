"""Defaults that decide are named: one slot per task manager, union list state that is cleared, and lists that make axes."""

from types import SimpleNamespace

import pytest

from sim.app.verbs.findings import axes_of
from tests.places import DATA

REPORTS = DATA / "reports"
PRESSED = """\
# How much data is in flight?
version: 1
job:
  src: {source: {rate: unlimited, record: 1 kB}, parallelism: 4}
  map: {input: {src: hash}, parallelism: 4}
  sink: {input: {map: hash}, service: 1 ms, parallelism: 4}
checkpoint: {interval: 5 s, barriers: BARRIERS}
run: {duration: 12 s}
"""


def lines(done):
    assert done.exit_code == 0
    return " ".join(done.stdout.split()), [line for line in done.stderr.splitlines() if line]


def test_a_restart_names_what_it_does_to_union_list_state(ckptsim):
    """apache/paimon#1732, 100 writers: 6 kB, and 600 kB and 60 MB where restored elements are not cleared."""
    scenario = REPORTS / "br03" / "scenario.yaml"
    _, cleared = lines(ckptsim(f"run {scenario} --out cleared"))
    table, kept = lines(ckptsim(f"run {scenario} --set 'job.writer.union-state={{clears: false}}' --out kept"))
    _, silent = lines(ckptsim(f"run {scenario} --set 'faults=[]' --set job.writer.parallelism=2 --out silent"))

    state = "each of the 100 subtasks of 'writer' restores the union list state of all, 6 kB, and"
    assert (
        f"scenario: {state} keeps its own; with union-state: {{clears: false}} it is 100 times as large after each restart"
        in cleared
    )
    assert any(
        line.startswith(f"scenario: {state} snapshots all of it again (clears: false): 100 times as large")
        for line in kept
    )
    assert any("pekko.framesize" in line for line in kept), "what is not simulated is named"
    assert not any("union" in line for line in silent), "nothing restarts"
    assert " 600 kB " in table, "the median checkpoint"


def test_union_list_state_without_a_size_is_named(ckptsim):
    changes = "--set job.writer.snapshot={} --set job.writer.parallelism=2 --set 'run.duration=100 s'"
    done = ckptsim(f"run {REPORTS}/br03/scenario.yaml {changes} --out out")

    assert any(line.startswith("scenario: the union list state of 'writer' has no size") for line in lines(done)[1])


@pytest.mark.parametrize("verb", ["run", "sweep"])
def test_the_axes_of_a_file_are_named_first(ckptsim, tmp_path, verb):
    text = (
        PRESSED.replace("BARRIERS", "[aligned, unaligned]")
        .replace("1 ms", "[{uniform: 1 ms}, {uniform: 2 ms}]")
        .replace("12 s", "6 s")
    )
    (file := tmp_path / "axes.yaml").write_text(text)
    _, found = lines(ckptsim(f"{verb} {file} --set 'run.seed=[1, 2, 3]' --out out"))

    assert found[0] == "axes: job.sink.service (2) x checkpoint.barriers (2) x run.seed (3)"


def test_a_file_without_lists_has_no_axes(ckptsim, tmp_path):
    (file := tmp_path / "one.yaml").write_text(PRESSED.replace("BARRIERS", "aligned"))

    assert not any(line.startswith("axes") for line in lines(ckptsim(f"run {file} --out out"))[1])


@pytest.mark.parametrize(("size", "is_named"), [("24 MB", True), ("16 MB", False)])
def test_state_that_memory_of_the_job_manager_does_not_take_is_named(ckptsim, tmp_path, size, is_named):
    """5 MiB per state and subtask, of which there are four: a real job declines its checkpoints."""
    text = PRESSED.replace("BARRIERS", "aligned").replace("{src: hash},", f"{{src: hash}}, state: {{size: {size}}},")
    (tmp_path / "job.yaml").write_text(f"{text}flink: {{execution.checkpointing.storage: jobmanager}}\n")

    _, remarks = lines(ckptsim("run job.yaml --out out"))

    assert is_named == any(
        "a real job declines each of them, as a subtask of 'map' has 6 MB" in line for line in remarks
    )


@pytest.mark.parametrize(
    ("ship", "parallelism", "is_chained"), [("forward", 2, True), ("forward", 1, False), ("hash", 2, False)]
)
def test_vertices_that_flink_would_chain_are_named(ckptsim, tmp_path, ship, parallelism, is_chained):
    """A forward edge between unequal parallelisms is a rebalance, as in Flink."""
    text = PRESSED.replace("BARRIERS", "aligned").replace("{src: hash}", f"{{src: {ship}}}")
    (tmp_path / "job.yaml").write_text(text)
    done = ckptsim(f"check job.yaml --set job.map.parallelism={parallelism} --set job.src.parallelism=2")

    assert done.exit_code == 0, done.stderr
    assert is_chained == ("unless the program forbids it: 'src' -> 'map'" in done.stderr)


def test_keys_that_vary_in_step_have_fewer_combinations():
    """Three intervals, and two pairs of barriers and regions."""
    pairs = (("aligned", "off"), ("unaligned", "on"))
    scenarios = [
        SimpleNamespace(axes=(("interval", interval), ("barriers", barriers), ("region", region)))
        for interval in ("10 s", "1 min", "3 min")
        for barriers, region in pairs
    ]

    assert [remark.text for remark in axes_of(scenarios)] == [
        "axes: interval (3) x barriers (2) x region (2), in 6 combinations"
    ]
    assert [remark.text for remark in axes_of(scenarios[::2])] == ["axes: interval (3) x barriers (1) x region (1)"]

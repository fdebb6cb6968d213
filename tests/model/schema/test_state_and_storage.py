"""State backends and storage from the file to the model: keys, kinds of storage, and Flink's own keys."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.job import Distribution
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.state import ROCKSDB_FREEZE, Changelog, State, Ttl
from sim.model.storage import Dfs, FileMerging, ObjectStore, SlowPlaces, Storage

# State backends from the file to the model: `state:`, the keys about state in `checkpoint:`, and Flink's own keys.


S = 1_000_000_000
TEXT = """\
job:
  a: {{source: {{rate: 1k/s, record: 100 B}}}}
  b: {{input: {{a: hash}}, state: {{size: 4 GiB{state}}}}}
checkpoint: {{interval: 5 s{checkpoint}}}
run: {{duration: 60 s}}
"""


def study(state="", checkpoint="", flink=()):
    text = TEXT.format(state=state and f", {state}", checkpoint=checkpoint and f", {checkpoint}")
    return loads(text + ("flink:\n" if flink else "") + "".join(f"  {line}\n" for line in flink), "s")


def model(state="", checkpoint="", flink=()):
    scenario = study(state, checkpoint, flink).scenarios[0]
    return scenario.job.vertex("b").state, scenario.checkpoint.state


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("growth: 1 B, ttl: 1 h", State(4 << 30, growth_bytes=1, ttl=Ttl(3600 * S))),
        ("ttl: 1 s, ttl-checks: 0, ttl-filter: true", State(4 << 30, ttl=Ttl(S, 0, filters_snapshots=True))),
        ("growth: 1 B, ttl: 0 s", State(4 << 30, growth_bytes=1)),
        ("changelog: on", State(4 << 30, changelog=Changelog())),
        ("changelog: off", State(4 << 30)),
    ],
)
def test_a_backend_as_it_is_written(state, expected):
    assert expected == model(state)[0]


def test_what_a_backend_does_not_have_is_told():
    """Not wrong: both backends may be swept.  `serialize` and `wait` of an import are there for a what-if."""
    texts = ("lsm: {base: 1 GB}", "lsm: {wait: 58 %}", "backend: rocksdb, serialize: 1 GB/s")
    warnings = [warning for text in texts for warning in study(text).warnings]

    assert [str(w).split("has no effect: ")[1] for w in warnings] == ["only rocksdb has one"]


@pytest.mark.parametrize(
    ("state", "freeze_ns"),
    [
        ("backend: rocksdb", ROCKSDB_FREEZE.likely),
        ("backend: rocksdb, freeze: 63 ms", 63_000_000),
        ("backend: rocksdb, lsm: {freeze: 30 ms}", 30_000_000),
        ("backend: rocksdb, freeze: 1 ms, lsm: {freeze: 30 ms}", 31_000_000),
        ("lsm: {freeze: 30 ms}", 0),
    ],
)
def test_what_freezing_costs_goes_with_the_backend(state, freeze_ns):
    """Measured in RocksDB it is not left behind when the backend is set to the heap; what a file calls `freeze` is all of it."""
    found, _ = model(state)

    assert freeze_ns == found.sync_ns + (found.lsm.freeze_ns if found.kind.keeps_files else 0)


def test_a_copy_nobody_reads_is_told():
    """Local backup and local recovery are two options; one alone does nothing."""
    found = study(flink=["execution.checkpointing.local-backup.enabled: true"])

    assert not found.scenarios[0].checkpoint.state.local_recovery
    assert "has no effect without execution.state-recovery.from-local: true" in str(found.warnings[0])


def test_a_changelog_of_flink_s_keys_lies_in_memory_by_default():
    assert model(flink=["state.changelog.enabled: true"])[0] == State(4 << 30, changelog=Changelog(storage="memory"))


@pytest.mark.parametrize(
    ("state", "ttl", "expected"),
    [
        ("growth: 1 B", "2 h", State(4 << 30, growth_bytes=1, ttl=Ttl(7200 * S))),
        ("growth: 1 B", "0", State(4 << 30, growth_bytes=1)),
        ("update: 1 %", "2 h", State(4 << 30, update_share=Fraction(1, 100), ttl=Ttl(7200 * S))),
        ("", "2 h", State(4 << 30)),
    ],
)
def test_the_time_to_live_of_a_sql_job_is_about_state_that_records_write_to(state, ttl, expected):
    """State that nobody writes to would only vanish."""
    assert expected == model(state, flink=[f"table.exec.state.ttl: {ttl}"])[0]


def test_keys_about_expiry_that_have_no_effect_are_told():
    """Without a time to live, or in a backend that drops keys when it merges files."""
    growing = "growth: 1 B, ttl-checks: 1"
    warnings = [study(text).warnings[0] for text in (growing, f"{growing}, ttl: 1 h, backend: rocksdb")]

    expected = [
        "has no effect without ttl: (time from the last write of a key to its expiry)",
        "has no effect with rocksdb: expired keys are removed by compactions",
    ]
    assert expected == [str(warning).split("state.ttl-checks: ")[1] for warning in warnings]


def test_a_key_about_another_backend_is_told():
    (warning,) = study(flink=["state.backend.rocksdb.writebuffer.size: 16mb"]).warnings

    assert "has no effect: no vertex has this kind of state" in str(warning)


def test_an_incremental_heap_is_told():
    """Flink takes the option and writes everything all the same."""
    (warning,) = study(checkpoint="incremental: true").warnings

    assert str(warning).startswith("s:4:29: checkpoint.incremental: has no effect")
    assert study("backend: rocksdb, update: 10 %", "incremental: true").warnings == ()


# `storage:` reads as written: three kinds, slow nodes, retries, merging, disks; a mistake is told where it stands.


STORED = """\
job:
  a: {source: {rate: 1k/s, record: 100 B}}
  b: {input: {a: hash}, state: {size: 1 MB}}
checkpoint: {interval: 5 s}
run: {duration: 60 s}
"""
MS, SECOND = 10**6, 10**9


def storage(section, folder="."):
    return loads(f"{STORED}storage: {section}\n", "s", folder=folder).scenarios[0].storage


def refusal_of_storage(section, folder="."):
    with pytest.raises(ScenarioError) as refused:
        storage(section, folder)
    return str(refused.value)


@pytest.mark.parametrize(
    ("written", "read"),
    [("", 60 * 10**6), (", read-bandwidth: 20 MB/s", 20 * 10**6), (", read-bandwidth: unlimited", None)],
)
def test_files_are_read_as_fast_as_written_unless_said(written, read):
    assert storage(f"{{bandwidth: 60 MB/s{written}}}").read_bytes_per_second == read


def test_the_defaults_are_those_of_the_model():
    """A dfs of fewer nodes than replicas uses them all; a plain duration of an episode is the mean of an exponential one."""
    slow = SlowPlaces(Fraction(1, 100), 5, Distribution(90 * SECOND, "exponential"))

    assert Storage(dfs=Dfs(10)) == storage("{dfs: {nodes: 10}}")
    assert Storage(dfs=Dfs(2, replication=2)) == storage("{dfs: {nodes: 2}}")
    assert Storage(dfs=Dfs(10, None)) == storage("{dfs: {nodes: 10, bandwidth: unlimited}}")
    assert Storage(object_store=ObjectStore()) == storage("{object-store: {}}")
    assert Storage(dfs=Dfs(9, slow=slow)) == storage("{dfs: {nodes: 9, slow: {share: 1 %, factor: 5, lasts: 90 s}}}")
    assert Storage(dfs=Dfs(9, slow=replace(slow, lasts=SlowPlaces().lasts))) == storage(
        "{dfs: {nodes: 9, slow: {share: 1 %, factor: 5}}}"
    )


def test_files_are_merged_as_flink_does_by_default():
    assert [FileMerging(), None] == [storage(f"{{file-merging: {switch}}}").merging for switch in ("on", "off")]


def series(tmp_path, *rows):
    (tmp_path / "speed.csv").write_text("at,vm,speed\n" + "".join(f"{row}\n" for row in rows))
    return tmp_path


SLOW = "{dfs: {nodes: 3, slow: {trace: speed.csv, column: speed, machine: vm}}}"


def test_a_measured_series(tmp_path):
    """Mostly it is 200: that is factor 1.  A blank keeps the speed before it; each machine counts from its own first row."""
    folder = series(tmp_path, "0,x,200", "10,x,200", "20,x,50", "30,x,", "40,x,400", "1000,y,200", "1020,y,100")
    trace = storage(SLOW, folder).dfs.slow.trace

    assert trace.length_ns == 40 * SECOND
    assert ((0, 1), (20 * SECOND, 4), (40 * SECOND, Fraction(1, 2))) == trace.machines[0]
    assert trace.machines[1] == ((0, 1), (20 * SECOND, 2))


def test_a_run_begins_within_a_measured_series(tmp_path):
    folder = series(tmp_path, "0,x,200", "10,x,200", "40,x,400")

    assert storage(SLOW.replace("vm}", "vm, from: 12 s}"), folder).dfs.slow.trace.begin_ns == 12 * SECOND
    assert "speed.csv ends after 40 s: from: 40 s is later" in refusal_of_storage(
        SLOW.replace("vm}", "vm, from: 40 s}"), folder
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["0,x,fast"], "speed.csv:2: 'fast' is not a speed"),
        (["0,x,5", "0,x,6"], "speed.csv:3: time does not increase"),
        (["0,x,5", "1,x,0"], "speed.csv:3: a request at speed 0 would never end"),
        (["0,x,5"], "speed.csv has fewer than two speeds of a machine in column 'speed'"),
    ],
)
def test_mistakes_in_a_series(tmp_path, rows, message):
    assert message in refusal_of_storage(SLOW, series(tmp_path, *rows))


def test_a_series_needs_its_columns(tmp_path):
    folder = series(tmp_path, "0,x,5")

    assert "has no column 'sped' (did you mean 'speed'?)" in refusal_of_storage(
        SLOW.replace("column: speed", "column: sped"), folder
    )


def test_flink_s_keys_of_s3_are_about_an_object_store():
    """Other storage has no use for them, and says so."""
    study = loads(f"{STORED}flink:\n  s3.upload.min.part.size: 10 mb\n  s3.upload.max.concurrent.uploads: 6\n")

    assert sum("has no effect: the scenario has no storage.object-store" in w.message for w in study.warnings) == 2

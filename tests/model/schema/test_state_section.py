"""State backends from the file to the model: `state:`, the keys about state in `checkpoint:`, and Flink's own keys."""

from fractions import Fraction

import pytest

from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.state import ROCKSDB_FREEZE, Changelog, State, Ttl

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


def refusal(state="", checkpoint="", flink=()):
    with pytest.raises(ScenarioError) as refused:
        study(state, checkpoint, flink)
    return str(refused.value)


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


def test_incremental_is_an_axis():
    """Two runs of one file."""
    scenarios = study("backend: rocksdb", "incremental: [false, true]").scenarios

    assert [scenario.checkpoint.state.incremental for scenario in scenarios] == [False, True]


@pytest.mark.parametrize(
    ("state", "checkpoint", "message"),
    [
        ("value: 0 B", "", "s:3:46: job.b.state.value: an entry has at least 1 B"),
        ("backend: rocksdb, lsm: {memtable: 0 B}", "", "job.b.state.lsm.memtable: must be more than 0"),
        ("backend: rocksdb, lsm: {flush: unlimited}", "", "job.b.state.lsm.flush: cannot be unlimited: write a rate"),
        ("backend: rocksdb, lsm: {multiplier: 1}", "", "job.b.state.lsm.multiplier: is 1"),
        ("backend: rocksdb, lsm: {level0-files: 0}", "", "0 is out of range"),
        ("backend: rocksdb, lsm: {write-buffer: 1 MB}", "", "did you mean memtable?"),
        ("changelog: {threshold: 0 B}", "", "job.b.state.changelog.threshold: must be more than 0"),
        ("incremental: true", "", "incremental stands in checkpoint:"),
        ("", "incremental: yes please", "s:4:29: checkpoint.incremental: expected true or false"),
        ("", "savepoint-cpu: 100 %", "leaves the task nothing to work with"),
        ("", "transfer-threads: 0", "0 is out of range"),
    ],
)
def test_a_mistake_is_told_where_it_stands(state, checkpoint, message):
    assert message in refusal(state, checkpoint)


def test_what_a_backend_does_not_have_is_told():
    """Not wrong: both backends may be swept.  `serialize` of an import waits for a what-if that goes to the heap."""
    warnings = [*study("lsm: {base: 1 GB}").warnings, *study("backend: rocksdb, serialize: 1 GB/s").warnings]

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
        "write ttl, how long after its last write a key leaves",
        "in rocksdb expired keys leave when files are merged",
    ]
    assert expected == [str(warning).split("state.ttl-checks: has no effect: ")[1] for warning in warnings]


def test_a_key_about_another_backend_is_told():
    (warning,) = study(flink=["state.backend.rocksdb.writebuffer.size: 16mb"]).warnings

    assert "has no effect: no vertex has such state" in str(warning)


def test_an_incremental_heap_is_told():
    """Flink takes the option and writes everything all the same."""
    (warning,) = study(checkpoint="incremental: true").warnings

    assert str(warning).startswith("s:4:29: checkpoint.incremental: has no effect")
    assert study("backend: rocksdb, update: 10 %", "incremental: true").warnings == ()

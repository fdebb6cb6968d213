"""Flink's own keys mean what they mean in Flink; none is ignored in silence."""

import pytest

from sim.model.cluster import Debloating
from sim.scenario import ScenarioError, loads
from sim.scenario.flink.keys import NOT_MODELLED, current_names, modelled_keys

TEXT = """\
job:
  a: {source: {rate: 1k/s, record: 100 B}}
  b: {input: {a: hash}, state: {size: 1 MB}}
run: {duration: 60 s}
flink:
"""
INTERVAL = "  execution.checkpointing.interval: 5s\n"


def study(*lines, profile="2.x"):
    return loads(TEXT + INTERVAL + "".join(f"  {line}\n" for line in lines) + f"cluster: {{profile: {profile}}}\n", "s")


def scenario(*lines, profile="2.x"):
    return study(*lines, profile=profile).scenarios[0]


def refusal(*lines):
    with pytest.raises(ScenarioError) as refused:
        study(*lines)
    return str(refused.value)


@pytest.mark.parametrize(
    ("line", "read", "expected"),
    [
        ("execution.checkpointing.timeout: 4000", lambda s: s.checkpoint.timeout_ns, 4 * 10**9),
        ("execution.checkpointing.min-pause: 3 s", lambda s: s.checkpoint.min_pause_ns, 3 * 10**9),
        ("execution.checkpointing.max-concurrent-checkpoints: '2'", lambda s: s.checkpoint.max_concurrent, 2),
        ("execution.checkpointing.tolerable-failed-checkpoints: 5", lambda s: s.checkpoint.tolerable_failed, 5),
        ("execution.checkpointing.unaligned.max-subtasks-per-channel-state-file: 1",
         lambda s: s.checkpoint.subtasks_per_channel_state_file, 1),
        ("execution.checkpointing.data-inline-threshold: 0 kb", lambda s: s.storage.inline_threshold_bytes, 0),
        ("state.storage.fs.memory-threshold: 1mb", lambda s: s.storage.inline_threshold_bytes, 1 << 20),
        ("taskmanager.memory.segment-size: 8kb", lambda s: s.cluster.network.segment_bytes, 8192),
        ("taskmanager.memory.starting-segment-size: 2kb", lambda s: s.cluster.network.starting_segment_bytes, 2048),
        ("execution.buffer-timeout.interval: 10 ms", lambda s: s.cluster.network.buffer_timeout_ns, 10**7),
        ("execution.buffer-timeout: 0", lambda s: s.cluster.network.buffer_timeout_ns, 0),
        ("execution.buffer-timeout.enabled: false", lambda s: s.cluster.network.buffer_timeout_ns, -1),
        ("taskmanager.network.memory.buffer-debloat.enabled: true", lambda s: s.cluster.network.debloat, Debloating()),
        ("taskmanager.network.memory.buffer-debloat.enabled: 'false'", lambda s: s.cluster.network.debloat, None),
        ("parallelism.default: 3", lambda s: [v.parallelism for v in s.job.vertices], [3, 3]),
        ("pipeline.max-parallelism: 64", lambda s: [v.max_parallelism for v in s.job.vertices], [64, 64]),
        ("pipeline.auto-watermark-interval: 50 ms", lambda s: s.job.vertex("a").source.watermark.interval_ns, 50 * 10**6),
        ("table.exec.source.idle-timeout: 5 s", lambda s: s.job.vertex("a").source.watermark.idle_timeout_ns, 5 * 10**9),
        ("table.exec.source.idle-timeout: 0", lambda s: s.job.vertex("a").source.watermark.idle_timeout_ns, None),
        ("state.backend.type: rocksdb", lambda s: s.job.vertex("b").state.backend, "rocksdb"),
        ("state.backend: rocksdb", lambda s: s.job.vertex("b").state.backend, "rocksdb"),
        ("execution.checkpointing.unaligned.enabled: true", lambda s: str(s.checkpoint.barriers), "unaligned"),
        ("execution.checkpointing.unaligned: true", lambda s: str(s.checkpoint.barriers), "unaligned"),
        ("execution.checkpointing.mode: AT_LEAST_ONCE", lambda s: str(s.checkpoint.barriers), "at-least-once"),
        ("execution.checkpointing.mode: EXACTLY_ONCE", lambda s: str(s.checkpoint.barriers), "aligned"),
    ],
)  # fmt: skip
def test_a_modelled_key(line, read, expected):
    """Each acts on the model, in Flink's units, under old names too."""
    given = study(line)

    assert expected == read(given.scenarios[0])
    assert () == given.warnings


def test_the_interval_of_flink_is_enough():
    """No checkpoint: section is needed beside it; 0 means none, as in Flink."""

    assert 5 * 10**9 == loads(TEXT + INTERVAL).scenarios[0].checkpoint.interval_ns
    assert loads(TEXT + INTERVAL.replace("5s", "0")).scenarios[0].checkpoint.interval_ns is None


def test_nested_keys():
    """config.yaml of 2.x nests."""
    text = TEXT + "  execution:\n    checkpointing: {interval: 7s, unaligned: {enabled: true}}\n"

    assert (7 * 10**9, "unaligned") == (loads(text).scenarios[0].checkpoint.interval_ns, str(loads(text).scenarios[0].checkpoint.barriers))


def test_an_aligned_timeout_needs_unaligned():
    """Both: aligned with a timeout.  The timeout alone has no effect, and says so."""
    enabled, timeout = "execution.checkpointing.unaligned.enabled: true", "execution.checkpointing.aligned-checkpoint-timeout: 30s"

    assert "aligned-timeout 30 s" == str(scenario(enabled, timeout).checkpoint.barriers)
    assert "unaligned" == str(scenario(enabled, timeout.replace("30s", "0 ms")).checkpoint.barriers)
    assert "aligned" == str(scenario(timeout).checkpoint.barriers)
    assert "has no effect without" in str(study(timeout).warnings[0])


def test_lists_are_axes():
    """Also where several keys make one choice; choices that are equal count once."""
    intervals = loads(TEXT + INTERVAL.replace("5s", "[5s, 10s]"))
    barriers = study(
        "execution.checkpointing.unaligned.enabled: [false, true]", "execution.checkpointing.aligned-checkpoint-timeout: [0, 1s]"
    )

    assert ("checkpoint.interval", ("5 s", "10 s")) == (intervals.axes[0].name, intervals.axes[0].values)
    assert ("checkpoint.barriers", ("aligned", "unaligned", "aligned-timeout 1 s")) == (barriers.axes[0].name, barriers.axes[0].values)


def test_debloating_in_detail():
    """All its keys; details without the switch say that they do nothing."""
    block = "taskmanager.network.memory.buffer-debloat."
    details = [f"{block}period: 100", f"{block}target: 500ms", f"{block}samples: 5", f"{block}threshold-percentages: 50"]
    debloat = scenario(f"{block}enabled: true", *details, "taskmanager.memory.min-segment-size: 512b").cluster.network.debloat

    assert Debloating(5 * 10**8, 10**8, 5, 50, 512) == debloat
    assert 4 == len(study(*details).warnings)


BUFFERS = ["buffers-per-channel: 4", "floating-buffers-per-gate: 16", "max-buffers-per-channel: 20", "max-overdraft-buffers-per-gate: 9"]


def test_buffers_are_options_in_1_20_and_constants_in_2_x():
    """In 2.x Flink ignores them: so do we, and say so."""
    lines = [f"taskmanager.network.memory.{line}" for line in BUFFERS]
    old, new = study(*lines, profile="1.20"), study(*lines)
    numbers = [
        (n.exclusive_per_channel, n.floating_per_gate, n.max_per_channel, n.overdraft)
        for n in (given.scenarios[0].cluster.network for given in (old, new))
    ]

    assert [(4, 16, 20, 9), (2, 8, 10, 20)] == numbers
    assert () == old.warnings
    assert 4 == len(new.warnings)
    assert "is ignored: Flink 2.x has no such option, it is 2 (profile: 1.20 has it)" in str(new.warnings[0])


def test_a_single_buffer_per_channel_is_warned_of():
    """Flink takes it and stands still: the buffer that is being filled makes the output unavailable."""
    alone, several = (study(f"taskmanager.network.memory.max-buffers-per-channel: {n}", profile="1.20") for n in (1, 2))

    assert "max-buffers-per-channel: is 1: as in Flink, a task stands still" in str(alone.warnings[0])
    assert () == several.warnings


def test_what_is_not_modelled_is_named():
    """Known keys without effect: one warning each, with its line."""
    warnings = [str(w) for w in study("execution.checkpointing.dir: x", "rest.port: 8081", "task.cancellation.interval: 10 s").warnings]

    assert [
        "s:7:3: flink.execution.checkpointing.dir: is not modelled: it has no effect here",
        "s:8:3: flink.rest.port: is not modelled: it has no effect here",
        "s:9:3: flink.task.cancellation.interval: is not modelled: it has no effect here",
    ] == warnings


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("execution.checkpointing.timeuot: 5s", "(did you mean 'execution.checkpointing.timeout'?)"),
        ("taskmanager.network.memory.bufers-per-channel: 5", "(did you mean 'taskmanager.network.memory.buffers-per-channel'?)"),
        ("my.own.key: 5", "unknown configuration key of Flink"),
        ("execution.checkpointing.timeout: 5 fortnights", "is not a duration as Flink reads it"),
        ("taskmanager.memory.segment-size: 8 KiB", "is not a size as Flink reads it"),
        ("execution.checkpointing.max-concurrent-checkpoints: many", "expected a whole number, not 'many'"),
        ("execution.checkpointing.unaligned.enabled: yes", "expected true or false, not 'yes'"),
        ("execution.checkpointing.mode: EXACTLY_TWICE", "expected exactly_once or at_least_once"),
        ("state.backend.type: forst", "expected hashmap or rocksdb, not 'forst'"),
        ("parallelism.default: [1, 2]", "cannot be a list"),
        ("taskmanager.memory.segment-size: 3000b", "flink.taskmanager.memory.segment-size: 3000 B: Flink wants a power of two"),
    ],
)
def test_mistakes(line, message):
    """Told at the key of Flink, in Flink's words."""

    assert refusal(line).startswith("s:7:3: flink.")
    assert message in refusal(line)


def test_overrides_win_over_the_block():
    """--set beats flink:, which only fills what is not written."""
    given = loads(TEXT + INTERVAL, overrides=["checkpoint.interval=9 s"])

    assert 9 * 10**9 == given.scenarios[0].checkpoint.interval_ns


def test_the_lists_of_keys_do_not_overlap():
    """A key is modelled, or known, or another name of one."""
    lists = [set(modelled_keys()), set(current_names()), set(NOT_MODELLED)]

    assert sum(map(len, lists)) == len(set().union(*lists))
    assert set(current_names().values()) <= set(modelled_keys())
    assert 80 <= len(modelled_keys())

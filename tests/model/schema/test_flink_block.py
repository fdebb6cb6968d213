"""Flink's own keys mean what they mean in Flink; none is ignored in silence."""

import pytest

from sim.model.cluster import Debloating
from sim.model.schema.flink_block import masked_scenario
from sim.model.schema.flink_keys import current_names, listed_keys, modelled_keys
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError

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
        ("execution.checkpointing.max-concurrent-checkpoints: '2'", lambda s: s.checkpoint.max_concurrent, 2),
        ("execution.checkpointing.data-inline-threshold: 0 kb", lambda s: s.storage.inline_threshold_bytes, 0),
        ("execution.buffer-timeout: 0", lambda s: s.cluster.network.buffer_timeout_ns, 0),
        ("taskmanager.network.memory.buffer-debloat.enabled: 'false'", lambda s: s.cluster.network.debloat, None),
        ("table.exec.source.idle-timeout: 0", lambda s: s.job.vertex("a").source.watermark.idle_timeout_ns, None),
        ("state.backend: rocksdb", lambda s: s.job.vertex("b").state.backend, "rocksdb"),
        ("execution.checkpointing.unaligned: true", lambda s: str(s.checkpoint.barriers), "unaligned"),
        ("execution.checkpointing.mode: AT_LEAST_ONCE", lambda s: str(s.checkpoint.barriers), "at-least-once"),
    ],
)
def test_a_modelled_key(line, read, expected):
    """Each acts on the model, in Flink's units, under old names too."""
    given = study(line)

    assert expected == read(given.scenarios[0])
    assert given.warnings == ()


def test_an_aligned_timeout_needs_unaligned():
    """Both: aligned with a timeout.  The timeout alone has no effect, and says so."""
    enabled, timeout = (
        "execution.checkpointing.unaligned.enabled: true",
        "execution.checkpointing.aligned-checkpoint-timeout: 30s",
    )

    assert str(scenario(enabled, timeout).checkpoint.barriers) == "aligned-timeout 30 s"
    assert str(scenario(enabled, timeout.replace("30s", "0 ms")).checkpoint.barriers) == "unaligned"
    assert str(scenario(timeout).checkpoint.barriers) == "aligned"
    assert "has no effect without" in str(study(timeout).warnings[0])


def test_lists_are_axes():
    """Also where several keys make one choice; choices that are equal count once."""
    intervals = loads(TEXT + INTERVAL.replace("5s", "[5s, 10s]"))
    barriers = study(
        "execution.checkpointing.unaligned.enabled: [false, true]",
        "execution.checkpointing.aligned-checkpoint-timeout: [0, 1s]",
    )

    assert (intervals.axes[0].name, intervals.axes[0].values) == ("checkpoint.interval", ("5 s", "10 s"))
    assert (barriers.axes[0].name, barriers.axes[0].values) == (
        "checkpoint.barriers",
        ("aligned", "unaligned", "aligned-timeout 1 s"),
    )


def test_debloating_in_detail():
    """All its keys; details without the switch say that they do nothing."""
    block = "taskmanager.network.memory.buffer-debloat."
    details = [
        f"{block}period: 100",
        f"{block}target: 500ms",
        f"{block}samples: 5",
        f"{block}threshold-percentages: 50",
    ]
    debloat = scenario(
        f"{block}enabled: true", *details, "taskmanager.memory.min-segment-size: 512b"
    ).cluster.network.debloat

    assert Debloating(5 * 10**8, 10**8, 5, 50, 512) == debloat
    assert len(study(*details).warnings) == 4


def test_a_single_buffer_per_channel_is_warned_of():
    """Flink takes it and stands still: the buffer that is being filled makes the output unavailable."""
    alone, several = (study(f"taskmanager.network.memory.max-buffers-per-channel: {n}", profile="1.20") for n in (1, 2))

    assert "max-buffers-per-channel: is 1: as in Flink, a task is blocked" in str(alone.warnings[0])
    assert several.warnings == ()


def warnings_of(*lines):
    return [str(warning) for warning in study(*lines).warnings]


def test_every_key_of_the_versions_listed_is_accepted():
    """All 1,200 at once: nothing of Flink's own stops a run, but for the values of modelled keys."""
    own = [key for key in listed_keys() if key not in modelled_keys() and key not in current_names()]
    (warning,) = warnings_of(*(f"{key}: x" for key in own))

    assert len(own) > 1_000
    assert f"not modelled, no effect here: {len(own)} keys of Flink: " in warning


def test_a_key_that_is_not_modelled_may_come_from_an_override_alone():
    (warning,) = loads(
        TEXT.partition("flink:")[0] + "checkpoint: {interval: 9 s}\n", "s", overrides=["flink.metrics.reporters=prom"]
    ).warnings

    assert str(warning).endswith("flink: not modelled, no effect here: 1 key of Flink: metrics.reporters")


@pytest.mark.parametrize("text", ['"flink": {s3.secret-key: a b}', "{version: 1, flink: {s3.secret-key: a b}}"])
def test_a_secret_is_masked_wherever_the_block_stands(text):
    assert "a b" not in masked_scenario(text)


def test_an_unknown_key_is_named_and_the_run_goes_on():
    """Flink takes any key: programs read their own from its configuration."""
    (state,), (own,) = warnings_of("state.backend.rocksdb.magic: 5"), warnings_of("my.own.key: 5")

    assert state.startswith(
        "s:7:3: flink.state.backend.rocksdb.magic: is an unknown key of Flink: it has no effect here (the nearest"
    )
    assert own == "s:7:3: flink.my.own.key: is an unknown key of Flink: it has no effect here"
    (added,) = warnings_of("execution.checkpointing.min-pause-between-checkpoints: 5 s")
    assert added.endswith("(the nearest one is 'execution.checkpointing.min-pause')")


@pytest.mark.parametrize("key", sorted(modelled_keys()))
def test_a_misspelt_name_of_a_modelled_key_stops_the_run(key):
    """Two letters that changed places, and a letter that is missing."""
    for wrong in (f"{key[:-3]}{key[-2]}{key[-3]}{key[-1]}", f"{key[:-4]}{key[-3:]}"):
        if wrong not in listed_keys() and wrong != key:
            assert f"(did you mean '{key}'?)" in refusal(f"{wrong}: 1")


def test_a_key_that_this_version_does_not_have_has_no_effect():
    """It came later, or under another name; an older name that a version still reads is as good as the new one."""
    later = study("execution.checkpointing.unaligned.recover-output-on-downstream.enabled: true", profile="1.20")
    renamed = study("state.backend.type: rocksdb", profile="1.15")
    older = [
        scenario("state.backend: rocksdb", profile=profile).job.vertex("b").state.backend
        for profile in ("1.15", "1.20", "2.x")
    ]

    assert "has no effect: Flink 1.20 does not know this key (Flink 2.3 does)" in str(later.warnings[0])
    assert "has no effect: Flink 1.15 does not know this key (its name there is state.backend)" in str(
        renamed.warnings[0]
    )
    assert renamed.scenarios[0].job.vertex("b").state.backend == "hashmap"
    assert older == ["rocksdb"] * 3


def test_slots_of_a_task_manager():
    """As Flink places: subtasks of one index share a slot, task managers are filled slot by slot."""
    cluster = scenario("taskmanager.numberOfTaskSlots: '10'").cluster
    other = loads(TEXT + INTERVAL + "  taskmanager.numberOfTaskSlots: 4\ncluster: {placement: single}\n")

    assert (cluster.placement, cluster.slots) == ("spread", 10)
    assert "has no effect with cluster.placement: single" in str(other.warnings[0])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("execution.checkpointing.timeout: PT", "is not a duration as Flink reads it"),
        ("execution.checkpointing.timeout: ${TIMEOUT}", "'${TIMEOUT}' is a placeholder: fill in its value first"),
        ("execution.checkpointing.timeout: '{{ .Values.timeout }}'", "is a placeholder: fill in its value first"),
        ("execution.checkpointing.unaligned.enabled: on", "expected true or false, not 'on'"),
        ("execution.checkpointing.tolerable-failed-checkpoints: 1e3", "expected a whole number, not '1e3'"),
        ("taskmanager.memory.segment-size: 8 KiB", "is not a size as Flink reads it"),
        ("execution.checkpointing.mode: EXACTLY_TWICE", "expected exactly_once or at_least_once"),
        ("state.backend.type: forst", "the state backend forst is not modelled: expected hashmap or rocksdb"),
        ("state.backend.type: rokcsdb", "did you mean 'rocksdb'"),
        ("parallelism.default: [1, 2]", "cannot be a list"),
        (
            "taskmanager.memory.segment-size: 3000b",
            "flink.taskmanager.memory.segment-size: 3000 B: Flink wants a power of two",
        ),
    ],
)
def test_mistakes(line, message):
    """Told at the key of Flink, in Flink's words."""

    assert refusal(line).startswith("s:7:3: flink.")
    assert message in refusal(line)


def test_the_lists_of_keys_do_not_overlap():
    """A key is modelled, or another name of one."""
    assert not set(modelled_keys()) & set(current_names())
    assert set(current_names().values()) <= set(modelled_keys())
    assert len(modelled_keys()) >= 80


@pytest.mark.parametrize("changelog", ["on", "{batch-delay: 20 ms}"])
def test_keys_of_the_changelog_are_of_vertices_that_switch_it_on(changelog):
    """state.changelog.enabled is not the only way to switch it on."""
    text = TEXT.replace("size: 1 MB", f"size: 1 MB, changelog: {changelog}")
    made = loads(f"{text}{INTERVAL}  state.changelog.periodic-materialize.interval: 5 min\n")

    assert made.scenarios[0].job.vertex("b").state.changelog.materialize_ns == 300 * 10**9
    assert [str(warning) for warning in made.warnings if "no effect" in str(warning)] == []

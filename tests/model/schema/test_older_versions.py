"""`cluster: {version: ...}` of a Flink that is older than the oldest profile: its own defaults, and a warning that names them."""

import pytest

from sim.model.cluster import was_added_after
from sim.model.schema.flink_keys import document_options, listed_keys, modelled_keys, options_missing_in_release, since
from sim.model.schema.option_values import key_in_release, non_default_keys
from sim.model.schema.study import loads

TEXT = """\
version: 1
job:
  src: {source: {rate: 100/s, record: 1 kB, records: 100}}
  op: {input: {src: hash}}
checkpoint: {interval: 5 s%s}
cluster: {version: %s}
restart: {strategy: fixed-delay}
run: {duration: 10 s}
"""


@pytest.mark.parametrize(
    ("version", "written", "finish"),
    [
        ("1.13.6", "", "off"),  # FLIP-147 came with 1.14, and is on since 1.15
        ("1.13.6", ", finish: flink", "flink"),  # what is written stays
        ("1.15.0", "", "flink"),
        ("2.x", "", "flink"),
    ],
)
def test_what_is_older_than_the_oldest_profile_is_simulated_as_that_and_told(version, written, finish):
    study = loads(TEXT % (written, version))
    told = [str(warning) for warning in study.warnings if f"{version} is simulated as 1.15, the oldest" in str(warning)]

    assert study.scenarios[0].checkpoint.finish == finish
    assert ["but for checkpoint.finish is off" in text for text in told] == [not written] * version.startswith("1.13")


# ---- Options that came later than the version: Flink ignores them, so they are not simulated, and a warning says so.

LATER = """\
version: 1
job:
  src: {source: {rate: 100/s, record: 1 kB, records: 100%(source)s}}
  op: {input: {src: hash}, state: {size: 1 MB%(state)s}}
checkpoint: {interval: 5 s%(checkpoint)s}
cluster: {version: %(version)s%(cluster)s}
restart: {strategy: fixed-delay%(restart)s}
storage: {%(storage)s}
run: {duration: 10 s}
"""
PARTS = ("source", "state", "checkpoint", "cluster", "restart", "storage")


def later(version, **written):
    return loads(LATER % (dict.fromkeys(PARTS, "") | written | {"version": version}))


@pytest.mark.parametrize(
    ("before", "release", "written"),
    [
        ("1.10.3", "1.11.0", {"checkpoint": ", barriers: unaligned"}),
        ("1.10", "1.13", {"checkpoint": ", barriers: {aligned-timeout: 1 s}"}),
        ("1.13.6", "1.14.0", {"cluster": ", network: {debloat: on}"}),
        ("1.13", "1.14", {"cluster": ", network: {debloat: {target: 300 ms}}"}),
        ("1.14.6", "1.15.0", {"state": ", changelog: on"}),
        ("1.17.2", "1.18.0", {"checkpoint": ", interval-during-backlog: 1 min"}),
        ("1.19", "1.20", {"storage": "file-merging: on"}),
        ("2.2", "2.3", {"checkpoint": ", recover-output-on-downstream: true"}),
    ],
)
def test_an_option_that_came_later_has_no_effect(before, release, written):
    """The scenario is the one without it; with the release that brought it, it is another one, without this warning."""
    source = {"source": ", backlog: {lag: 1 s}"}  # interval-during-backlog needs one
    old, without = later(before, **written, **source), later(before, **source)
    new, plain = later(release, **written, **source), later(release, **source)
    told = f"came with {release.removesuffix('.0')}"

    assert old.scenarios == without.scenarios
    assert [told in str(warning) for warning in old.warnings].count(True) == 1
    assert new.scenarios != plain.scenarios
    assert not [warning for warning in new.warnings if "came with" in str(warning)]


def test_a_timeout_that_came_later_leaves_what_the_release_has():
    """`unaligned: true` counts from 1.11 on, its timeout from 1.13 on."""
    written = {"checkpoint": ", barriers: {aligned-timeout: 1 s}"}

    kinds = [
        later(version, **written).scenarios[0].checkpoint.barriers.kind for version in ("1.10.3", "1.12.7", "1.13.6")
    ]

    assert kinds == ["aligned", "unaligned", "aligned-timeout"]


def test_switched_off_is_nothing_that_a_release_lacks():
    found = later("1.10.3", cluster=", network: {debloat: off}", storage="file-merging: off", state=", changelog: off")

    assert [str(warning) for warning in found.warnings if "has no effect" in str(warning)] == []


def test_a_backlog_without_checkpoints_came_with_its_option():
    """Off is not what the interval is without it."""
    source = {"source": ", backlog: {lag: 1 s}"}
    old, without = (
        later("1.17.2", **source, checkpoint=text).scenarios for text in (", interval-during-backlog: off", "")
    )

    assert old == without


@pytest.mark.parametrize(("version", "is_ignored"), [("1.18.1", True), ("1.19.0", False)])
def test_attempts_of_exponential_delay_came_later_than_those_of_fixed_delay(version, is_ignored):
    text = LATER % (dict.fromkeys(PARTS, "") | {"version": version, "restart": ", attempts: 2"})
    fixed, exponential = loads(text), loads(text.replace("fixed-delay", "exponential-delay"))

    assert fixed.scenarios[0].restart.attempts == 2
    assert (exponential.scenarios[0].restart.attempts is None) == is_ignored
    assert any("has no effect on exponential-delay" in str(warning) for warning in exponential.warnings) == is_ignored


def test_releases_of_keys_are_those_of_the_lists():
    """A key that says since when it exists is in the lists of the versions from then on, and of no other."""
    known = [key.flink for key in modelled_keys().values() if key.flink.since]

    assert len(known) > 10
    for flink in known:
        lists = [listed_keys().get(name, ()) for name in (flink.name, *flink.older)]
        for version in ("1.15", "1.20", "2.3"):
            assert any(version in versions for versions in lists) != was_added_after(flink.since, version), (
                flink,
                version,
            )


def test_nothing_is_later_than_the_newest():
    assert (
        options_missing_in_release("2.x") == options_missing_in_release("2.4") == options_missing_in_release("") == {}
    )
    assert options_missing_in_release("2.3") == {("restart", "rescale-checkpoint"): "2.4"}, "of its main branch"
    assert since(("checkpoint", "barriers"), "aligned", "1.5") == ""
    assert (
        len(options_missing_in_release("1.8"))
        > len(options_missing_in_release("1.14.0"))
        > len(options_missing_in_release("1.20.0"))
        > 0
    )
    assert {key.path for key in document_options()} >= set(options_missing_in_release("1.8"))


@pytest.mark.parametrize(
    ("version", "key", "name"),
    [
        ("1.13.6", "execution.checkpointing.aligned-checkpoint-timeout", "execution.checkpointing.alignment-timeout"),
        (
            "1.14",
            "execution.checkpointing.aligned-checkpoint-timeout",
            "execution.checkpointing.aligned-checkpoint-timeout",
        ),
        ("1.16.3", "execution.checkpointing.unaligned.enabled", "execution.checkpointing.unaligned"),
        ("1.17.1", "execution.checkpointing.unaligned.enabled", "execution.checkpointing.unaligned.enabled"),
        ("1.17.1", "execution.checkpointing.num-retained", "state.checkpoints.num-retained"),
        ("1.20.1", "execution.checkpointing.num-retained", "execution.checkpointing.num-retained"),
        ("1.18", "execution.state-recovery.claim-mode", "execution.savepoint-restore-mode"),
        ("1.19", "state.changelog.enabled", "state.backend.changelog.enabled"),
    ],
)
def test_a_release_gets_the_names_that_it_knows(version, key, name):
    """A release before the newest one of its profile has older names."""
    assert key_in_release(key, later(version).scenarios[0]) == name


def test_a_release_gets_no_keys_that_it_does_not_have():
    """Local recovery is one key until 1.19 and two afterwards."""
    names = {
        version: {
            name
            for name in non_default_keys(later(version, checkpoint=", local-recovery: true").scenarios[0])
            if "local" in name
        }
        for version in ("1.19.1", "1.20.1")
    }

    assert names["1.19.1"] == {"state.backend.local-recovery"}
    assert len(names["1.20.1"]) == 2


@pytest.mark.parametrize(
    ("sections", "strategy", "multiplier", "longest_s"),
    [
        ("checkpoint: {interval: 10 s}\ncluster: {version: 1.18.1}", "fixed-delay", 1.5, 60),
        ("checkpoint: {interval: 10 s}\ncluster: {profile: '1.15'}", "fixed-delay", 1.5, 60),
        ("checkpoint: {interval: 10 s}\ncluster: {version: 1.19.0}", "exponential-delay", 1.5, 60),
        ("checkpoint: {interval: 10 s}", "exponential-delay", 1.5, 60),
        (
            "checkpoint: {interval: 10 s}\ncluster: {version: 1.17.1}\nrestart: {strategy: exponential-delay}",
            "exponential-delay",
            2,
            300,
        ),
        (
            "checkpoint: {interval: 10 s}\ncluster: {version: 1.17.1}\nrestart: {strategy: exponential-delay, max: 9 s}",
            "exponential-delay",
            2,
            9,
        ),
        # RestartBackoffTimeStrategyFactoryLoader: a job without checkpoints is not restarted, unless it says how
        ("checkpoint: {interval: off}", "none", 1.5, 60),
        ("checkpoint: {interval: off}\ncluster: {version: 1.17.1}", "none", 1.5, 60),
        ("checkpoint: {interval: off}\nrestart: {strategy: fixed-delay}", "fixed-delay", 1.5, 60),
    ],
)
def test_how_a_job_restarts_by_default(sections, strategy, multiplier, longest_s):
    job = "version: 1\njob:\n  src: {source: {rate: 1k/s, record: 1 kB}}\n  sink: {input: {src: hash}}\nrun: {duration: 9 s}\n"
    restart = loads(job + sections).scenarios[0].restart

    assert (restart.strategy, restart.multiplier, restart.max_ns / 1e9) == (strategy, multiplier, longest_s)

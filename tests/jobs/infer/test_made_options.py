"""Options of made clusters and jobs, as Flink's answers say them, and what becomes of them in a scenario."""

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.options import _parse_restart_strategy, infer_checkpoint, infer_cluster
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import JobConfig
from tests.jobs.infer.made_jobs import MadeJob, comment_of, drafted, vertex

STRATEGY = "restart-strategy"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Restart with fixed delay (10000 ms). #3 restart attempts.", ("fixed-delay", 3, "10000 ms")),
        (
            "Restart with fixed delay (PT1H2M3.5S). #2147483647 restart attempts.",
            ("fixed-delay", 2**31 - 1, "3723500 ms"),
        ),
        ("Restart with fixed delay (PT0S). #0 restart attempts.", ("fixed-delay", 0, "0 ms")),
        ("Restart Deactivated.", ("none",)),
        ("Cluster level default restart strategy", ()),
        ("", ()),
    ],
)
def test_a_restart_strategy_is_read_from_its_description(text, options):
    """What it does not say, the cluster decides."""
    keys = (f"{STRATEGY}.type", f"{STRATEGY}.fixed-delay.attempts", f"{STRATEGY}.fixed-delay.delay")

    assert dict(zip(keys, options, strict=False)) == _parse_restart_strategy(text)


def cluster(options=(), version="2.3.0", strategy="", **answers):
    """The draft of a job of two vertices on a cluster of these options."""
    config = JobConfig.model_validate({"execution-config": {"restart-strategy": strategy}})
    job = MadeJob(
        [vertex("src"), vertex("sink", "src")], options=options, flink_version=version, job_config=config, **answers
    )
    draft = drafted(job)
    infer_cluster(draft, job)
    return draft


@pytest.mark.parametrize(
    ("version", "profile"),
    [("1.20.1", "1.20"), ("1.13", "1.15"), ("1.15.4", "1.15"), ("2.0.0", "2.x"), ("2.3-SNAPSHOT", "2.x")],
)
def test_the_profile_is_that_of_the_version(version, profile):
    draft = cluster(version=version)

    assert profile == draft.document["cluster"]["profile"]
    assert version == draft.document["cluster"]["version"]
    assert f"Flink {version} in /config" == comment_of(draft, "cluster.profile")


def test_options_of_the_cluster_are_kept_if_they_mean_something():
    """Verbatim; details without their switch say nothing, constants of 2.x neither, and they count as inferred."""
    kept = {
        "taskmanager.memory.segment-size": "8kb",
        "taskmanager.network.memory.buffer-debloat.enabled": "true",
        "taskmanager.network.memory.buffer-debloat.target": "2 s",
        "execution.checkpointing.region.enabled": "true",
        "execution.checkpointing.region.max-failure-ratio": "0.5",
        "heartbeat.rpc-failure-threshold": "-1",
        "restart-strategy.type": "exponential-delay",
    }
    left_out = {
        "taskmanager.network.memory.floating-buffers-per-gate": "16",
        "execution.checkpointing.file-merging.max-file-size": "1mb",
        "rest.port": "8081",
        "s3.secret-key": "******",
        "state.backend.incremental": "true",
    }
    older = {"jobmanager.adaptive-scheduler.scaling-interval.min": "7 s"}
    none, several = cluster(), cluster(kept | left_out | older | {"scheduler-mode": "reactive"})

    assert several.document["flink"] == kept | {
        "taskmanager.network.memory.buffer-debloat.enabled": True,
        "execution.checkpointing.region.enabled": True,
        "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "7 s",
        "scheduler-mode": "reactive",
        "jobmanager.scheduler": "adaptive",
    }
    assert several.inferred - none.inferred == 10


def test_the_restart_strategy_of_the_job_replaces_that_of_the_cluster():
    options = {"restart-strategy.type": "exponential-delay", "restart-strategy.exponential-delay.max-backoff": "9 s"}
    of_the_job = cluster(options, strategy="Restart with fixed delay (PT1M30.5S). #3 restart attempts.")
    older = cluster(options, "1.15.4", "Restart deactivated.")

    assert of_the_job.document["flink"] == {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 3,
        "restart-strategy.fixed-delay.delay": "90500 ms",
    }
    assert older.document["flink"] == {"restart-strategy": "none"}
    assert cluster(options, strategy="Cluster level default restart strategy").document["flink"] == options


@pytest.mark.parametrize(
    ("options", "provider"),
    [
        ({"kubernetes.cluster-id": "a"}, "kubernetes"),
        ({"yarn.application.id": "a"}, "yarn"),
        ({"yarn.appmaster.vcores": "1"}, "yarn"),
        ({"yarn.application.name": "a"}, "yarn"),
        ({"yarn.tags": "a"}, None),
        ({}, None),
    ],
)
def test_who_starts_task_managers_is_told_by_its_keys(options, provider):
    draft = cluster(options)

    assert provider == draft.document.get("restart", {}).get("provider")
    if provider:
        assert f"{next(iter(options))} in /jobmanager/config" == comment_of(draft, "restart.provider")


@pytest.mark.parametrize(
    ("name", "ms", "refused"),
    [
        ("interval", 9, True),
        ("interval", 10, False),
        ("interval", 0, False),
        ("timeout", 1, True),
        ("timeout", 10, False),
    ],
)
def test_no_flink_has_an_interval_or_timeout_below_ten_milliseconds(name, ms, refused):
    job = MadeJob([], config={name: ms})
    if refused:
        with pytest.raises(
            RecordingError, match=rf"saved: /checkpoints/config: {name} is {ms} ms; Flink takes 10 ms or more"
        ):
            infer_checkpoint(drafted(job), job)
    else:
        infer_checkpoint(drafted(job), job)


def configured(**config):
    draft = Draft()
    infer_checkpoint(draft, MadeJob([], config=config))
    return draft.document["checkpoint"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"interval": 30_000}, {"interval": "30 s"}),
        ({"interval": 30_000, "timeout": 90_000}, {"interval": "30 s", "timeout": "90 s"}),
        ({"interval": 30_000, "timeout": 2**63 - 1}, {"interval": "30 s", "timeout": "1000000000 s"}),
        ({"interval": 30_000, "timeout": 0}, {"interval": "30 s"}),
        ({"interval": 2**63 - 1}, {"interval": "off"}),
        ({"interval": 30_000, "min_pause": 1500}, {"interval": "30 s", "min-pause": "1.5 s"}),
        ({"interval": 30_000, "min_pause": 0, "max_concurrent": 1}, {"interval": "30 s"}),
        ({"interval": 30_000, "max_concurrent": 2}, {"interval": "30 s", "max-concurrent": 2}),
        (
            {"interval": 30_000, "max_concurrent": 2, "unaligned_checkpoints": True},
            {"interval": "30 s", "barriers": "unaligned"},
        ),
        ({"interval": 30_000, "tolerable_failed_checkpoints": 0}, {"interval": "30 s", "tolerable-failed": 0}),
        ({"interval": 30_000, "tolerable_failed_checkpoints": -1}, {"interval": "30 s", "tolerable-failed": 0}),
        ({"interval": 30_000, "checkpoints_after_tasks_finish": False}, {"interval": "30 s", "finish": "off"}),
        ({"interval": 30_000, "mode": "at_least_once"}, {"interval": "30 s", "barriers": "at-least-once"}),
        (
            {"interval": 30_000, "unaligned_checkpoints": True, "aligned_checkpoint_timeout": 500},
            {"interval": "30 s", "barriers": {"aligned-timeout": "500 ms"}},
        ),
    ],
)
def test_checkpoints_are_configured_as_the_job_says(config, expected):
    """What is not said, and what means never, is left to the defaults."""
    assert {"barriers": "aligned"} | expected == configured(**config)

"""Options of made clusters and jobs, as Flink's answers say them, and what becomes of them in a scenario."""

from types import SimpleNamespace

import pytest

from sim.jobs.infer.heap import infer_fresh_start
from sim.jobs.infer.options import _iso_ms, _known, _restart, infer_checkpoint, infer_cluster
from sim.jobs.infer.scenario import _run
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import JobConfig, TaskManagerInfo, VertexDetails
from sim.model.units import parse_duration
from tests.jobs.infer.made_jobs import MadeJob, checkpoint, comment_of, drafted
from tests.jobs.infer.test_edges_counted import vertex

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
        (
            "FixedDelayRestartBackoffTimeStrategy(maxNumberRestartAttempts=7, backoffTimeMS=1000)",
            ("fixed-delay", 7, "1000 ms"),
        ),
        ("NoRestartBackoffTimeStrategy", ("none",)),
        ("FixedDelayRestartBackoffTimeStrategy(of another version)", ()),
        ("Restart Deactivated.", ("none",)),
        ("Cluster level default restart strategy", ()),
        ("", ()),
    ],
)
def test_a_restart_strategy_is_read_from_its_description(text, options):
    """What it does not say, the cluster decides."""
    keys = (f"{STRATEGY}.type", f"{STRATEGY}.fixed-delay.attempts", f"{STRATEGY}.fixed-delay.delay")

    assert dict(zip(keys, options, strict=False)) == _restart(text)


@pytest.mark.parametrize(
    ("text", "ms"), [("1H", 3_600_000), ("2M", 120_000), ("3.25S", 3250), ("1H2M3S", 3_723_000), ("0.0004S", 0)]
)
def test_a_duration_of_java_is_read(text, ms):
    assert ms == _iso_ms(text)


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


def test_an_unknown_version_is_asked_for():
    draft = cluster(version="")

    assert draft.document["cluster"]["profile"] == "2.x"
    assert "Which version of Flink runs it?" in draft.unknown


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"execution.buffer-timeout.interval": "5 ms"}, {"execution.buffer-timeout.interval": "5 ms"}),
        ({"execution.buffer-timeout": "5 ms"}, {"execution.buffer-timeout.interval": "5 ms"}),
        ({"execution.checkpointing.interval": "5 s", "parallelism.default": "3", "rest.port": "8081"}, {}),
        ({"taskmanager.network.memory.buffer-debloat.target": "2 s"}, {}),
        (
            {
                "taskmanager.network.memory.buffer-debloat.target": "2 s",
                "taskmanager.network.memory.buffer-debloat.enabled": "False",
            },
            {},
        ),
        (
            {
                "taskmanager.network.memory.buffer-debloat.target": "2 s",
                "taskmanager.network.memory.buffer-debloat.enabled": "true",
            },
            {
                "taskmanager.network.memory.buffer-debloat.target": "2 s",
                "taskmanager.network.memory.buffer-debloat.enabled": True,
            },
        ),
        ({"execution.checkpointing.file-merging.max-file-size": "1mb"}, {}),
        ({"scheduler-mode": "REACTIVE"}, {"scheduler-mode": "REACTIVE", "jobmanager.scheduler": "adaptive"}),
        ({"scheduler-mode": "none"}, {"scheduler-mode": "none"}),
    ],
)
def test_options_that_mean_something_are_kept_under_their_present_names(options, kept):
    """What another answer tells more exactly is not, nor is a detail without its switch."""
    draft = cluster(options)

    assert kept == dict(_known(options, "2.3.0")) == draft.document.get("flink", {})
    assert ("flink" in draft.comments) == bool(kept)


def test_options_count_as_inferred():
    few, several = cluster(), cluster({"execution.buffer-timeout.interval": "5 ms", "scheduler-mode": "reactive"})

    assert several.inferred - few.inferred == 3


def test_the_strategy_of_the_job_takes_the_place_of_the_cluster_s():
    """All of it, under older names too."""
    options = {"restart-strategy": "exponential-delay", "restart-strategy.exponential-delay.initial-backoff": "1 s"}
    text = "Restart with fixed delay (500 ms). #7 restart attempts."
    draft, left = cluster(options, strategy=text), cluster(options)

    assert {
        f"{STRATEGY}.type": "fixed-delay",
        f"{STRATEGY}.fixed-delay.attempts": 7,
        f"{STRATEGY}.fixed-delay.delay": "500 ms",
    } == (draft.document["flink"])
    assert comment_of(draft, "flink.restart-strategy.type") == "from /jobs/:id/config"
    assert left.document["flink"][f"{STRATEGY}.type"] == "exponential-delay"


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


def managers(*slots):
    """(slots, free ones) of each."""
    return tuple(
        TaskManagerInfo.model_validate({"id": str(i), "slotsNumber": all_, "freeSlots": free})
        for i, (all_, free) in enumerate(slots)
    )


@pytest.mark.parametrize(
    ("slots", "question"),
    [
        ([(2, 0), (2, 0)], "None of 4 slots is free."),
        ([(2, 1), (2, 0)], "1 of 4 slots is free."),
        ([(3, 1), (3, 1)], "2 of 6 slots are free."),
        ([(2, 1), (2, 1)], None),
        ([(2, 0), (2, 2)], None),
        ([(2, 2), (2, 2)], None),
        ([(2, 0), (0, 0)], None),
        ([(2, 0), (2, -1)], None),
        ([], None),
    ],
)
def test_a_replacement_is_asked_for_where_no_slots_are_spare(slots, question):
    """The others need as many free ones as the lost one used; of task managers that do not tell nothing is asked."""
    draft = cluster(task_managers=managers(*slots))
    questions = [text for text in draft.unknown if "task manager is lost" in text]

    assert ("30 s" if question else None) == draft.document.get("restart", {}).get("replacement")
    assert [f"If a task manager is lost, after how long does another one offer its slots? {question}"] * bool(
        question
    ) == questions


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


def test_a_job_that_does_not_say_how_often_is_asked():
    draft = drafted(MadeJob([]))
    infer_checkpoint(draft, MadeJob([]))

    assert draft.document["checkpoint"] == {"interval": "1 min"}
    assert draft.unknown == ["How often is a checkpoint taken?"]


@pytest.mark.parametrize(
    ("config", "barriers"),
    [
        ({}, "aligned"),
        ({"mode": "AT_LEAST_ONCE"}, "at-least-once"),
        ({"unaligned_checkpoints": True}, "unaligned"),
        ({"unaligned_checkpoints": True, "aligned_checkpoint_timeout": 500}, {"aligned-timeout": "500 ms"}),
        ({"unaligned_checkpoints": True, "aligned_checkpoint_timeout": 0}, "unaligned"),
        ({"aligned_checkpoint_timeout": 500}, "aligned"),
    ],
)
def test_barriers_are_those_of_the_job(config, barriers):
    job = MadeJob([], config=config)
    draft = drafted(job)
    infer_checkpoint(draft, job)

    assert barriers == draft.document["checkpoint"]["barriers"]


@pytest.mark.parametrize(
    ("config", "took_ms", "seconds"),
    [
        ({"interval": 10_000}, 100, 120),
        ({"interval": 10_000}, 20_000, 240),
        ({"interval": 1000}, 100, 60),
        ({"interval": 400_000}, 100, 3600),
        ({"interval": 3_600_000}, 20_000, 240),
        (None, 20_000, 240),
        (None, -1, 60),
        ({"interval": -1}, 10_041, 120),
    ],
)
def test_a_run_has_twelve_checkpoints_in_a_minute_to_an_hour(config, took_ms, seconds):
    """As often as they are triggered, or as long as they take; an interval of an hour or more means never."""
    job = MadeJob([vertex("src")], [checkpoint(2, took_ms=took_ms), checkpoint(3, took_ms=took_ms)], config)
    draft = drafted(job)
    _run(draft, job)
    assert seconds * 10**9 == parse_duration(draft.document["run"]["duration"])


PHASES = "DEPLOYING", "INITIALIZING"


def started(*tasks, counts=(), attempt=0):
    """``(task manager, ms deploying, ms initializing)``."""
    subtasks = [
        {
            "subtask": i,
            "taskmanager-id": manager,
            "attempt": attempt,
            "status-duration": dict(zip(PHASES, took_ms, strict=True)),
        }
        for i, (manager, *took_ms) in enumerate(tasks)
    ]
    job = SimpleNamespace(counts=dict(counts), details={"a": VertexDetails.model_validate({"subtasks": subtasks})})
    draft = drafted(SimpleNamespace(vertices=[]))
    infer_fresh_start(draft, job)
    return draft.document.get("restart", {}).get("fresh-start"), draft


def test_a_fresh_start_is_that_of_the_slowest_task_of_each_task_manager():
    """500 and 900 ms, the median 700, of which 99 are the deployment."""
    found, draft = started(("a", 100, 400), ("a", 50, 100), ("b", 0, 900))

    assert found == "601 ms"
    assert comment_of(draft, "restart.fresh-start") == (
        "700 ms from DEPLOYING to RUNNING when the job began, less 99 ms (overheads: deploy); "
        "median over 2 task managers of their slowest task"
    )
    assert started(("a", 20, 30))[0] == "0 s"


@pytest.mark.parametrize(
    ("tasks", "options"),
    [
        ([("a", 100, 400)], {"counts": {"restored": 1}}),
        ([("a", 100, 400)], {"attempt": 1}),
        ([("", 100, 400)], {}),
        ([("a", -1, 400)], {}),
        ([("a", 100, -1)], {}),
        ([], {}),
    ],
)
def test_a_start_that_was_not_the_first_or_that_nobody_timed_tells_nothing(tasks, options):
    assert started(*tasks, **options)[0] is None

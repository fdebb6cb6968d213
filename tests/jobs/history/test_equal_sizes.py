"""Equal sizes of checkpoints: what they show about increments, and what they do not."""

import json

from sim.app.verbs.explain import explain_real_job
from sim.app.verbs.importing import JobPlace
from sim.jobs.history.history import sharing
from sim.jobs.source.recorded_job import RecordedCheckpoint

KB, MB = 1000, 10**6


def points(*sizes, subtasks=4):
    """Completed checkpoints from the second one on, of (checkpointed, full) bytes."""
    return [
        RecordedCheckpoint(
            id=number,
            status="COMPLETED",
            trigger_timestamp=number * 1000,
            checkpointed_size=own,
            state_size=full,
            num_subtasks=subtasks,
        )
        for number, (own, full) in enumerate(sizes, 2)
    ]


def test_small_state_is_whole_in_the_metadata():
    """It does not show that increments are off."""
    said = sharing(points(*[(14 * KB, 14 * KB)] * 5))

    assert said.startswith("Checkpointed size equals full size in all 5 checkpoints")
    assert (
        "A subtask has 3.5 kB on average: files below 20 kB (state.storage.fs.memory-threshold) are parts of _metadata"
        in said
    )
    assert "not in effect" not in said


def test_large_state_shows_that_increments_are_not_in_effect():
    same = points(*[(800 * MB, 800 * MB)] * 5)

    assert "Incremental checkpoints are configured, and are not in effect" in sharing(
        same, backend="EmbeddedRocksDBStateBackend"
    )
    assert "If incremental checkpoints are configured, they are not in effect" in sharing(same)
    assert "The job runs with HashMapStateBackend, which has no increments" in sharing(
        same, backend="HashMapStateBackend"
    )


def test_the_threshold_is_that_of_the_job():
    same = points(*[(400 * KB, 400 * KB)] * 5)

    assert "_metadata" in sharing(same, 1_000_000)
    assert "_metadata" not in sharing(same, 20_480)


def test_in_flight_data_is_in_both_sizes_and_no_sign_of_full_checkpoints(tmp_path):
    """12 GB that barriers overtook, 300 MB of state of which 20 MB are new."""
    rows = [
        json.loads(point.model_dump_json())
        | {"persisted_data": 12_000 * MB, "checkpoint_type": "UNALIGNED_CHECKPOINT", "end_to_end_duration": 900}
        for point in points(*[(12_020 * MB, 12_300 * MB)] * 5)
    ]
    (tmp_path / "checkpoints.json").write_text(json.dumps({"counts": {"total": 5}, "history": rows}))
    text = " ".join(explain_real_job(JobPlace([tmp_path / "checkpoints.json"])).text.split())

    assert "In-flight data that barriers overtook (persisted_data) is 100 % of what checkpoint 6 wrote, 12 GB" in text
    assert "equals full size" not in text
    assert "(unaligned) took 900 ms" in text


def test_full_checkpoints_beside_in_flight_data():
    same = [
        point.model_copy(update={"persisted_data": 12_000 * MB}) for point in points(*[(12_300 * MB, 12_300 * MB)] * 5)
    ]

    assert "Checkpointed size equals full size without in-flight data in all 5" in sharing(same)
    assert "A subtask has 75 MB on average" in sharing(same)


def test_an_answer_of_the_configuration_without_periodic_checkpoints(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"mode": "exactly_once", "interval": 2**63 - 1, "timeout": 600_000, "min_pause": 0})
    )
    said = " ".join(explain_real_job(JobPlace([tmp_path / "config.json"])).text.split())

    assert "No periodic checkpoints (interval: none), pause 0 ms, timeout 10 min." in said


def told(folder, config):
    (folder / "config.json").write_text(json.dumps(config))
    return " ".join(explain_real_job(JobPlace([folder / "config.json"])).text.split())


def test_an_answer_of_the_configuration_says_what_it_means(tmp_path):
    """At least once nothing is aligned; a log in memory travels with acknowledgements."""
    config = {
        "mode": "at_least_once",
        "interval": 5000,
        "timeout": 60000,
        "min_pause": 0,
        "unaligned_checkpoints": False,
    }
    log = {"state_changelog_enabled": True, "changelog_storage": "memory"}
    said, plain = told(tmp_path, config | log), told(tmp_path, config | {"mode": "exactly_once"})

    assert "timeout 60 s, not aligned." in said
    assert "timeout 60 s, aligned." in plain
    for sentence in (
        "counted twice after a restore.",
        "The changelog is in memory:",
    ):
        assert sentence in said
        assert sentence not in plain

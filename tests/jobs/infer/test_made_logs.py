"""Logs of made jobs: their triggers, durations and sizes are known, so the assumptions of their scenario can be counted by hand."""

import pytest

from sim.jobs.infer.log import TriggerRhythm, _rounded, _spread, infer_log, rhythm
from sim.jobs.source.job_log import LogCheckpoint, LogRefusal
from sim.model.units import parse_duration
from tests.jobs.infer.made_jobs import comment_of
from tests.jobs.infer.test_infer_log import logged, points


def grid(every_ms, took_ms, count=6):
    return [(every_ms * k, took_ms) for k in range(count)]


@pytest.mark.parametrize(
    ("ms", "rounded"),
    [
        (4998, 5000),
        (5100, 5000),
        (5103, 5100),
        (4901, 4900),
        (5300, 5300),
        (59_000, 60_000),
        (9_805, 10_000),
        (1234, 1230),
        (10.3, 10),
        (7, 7),
        (0.2, 1),
        (61_300, 61_000),
    ],
)
def test_the_round_number_nearby_is_meant(ms, rounded):
    """Within two of a hundred; the roundest of them."""
    assert rounded == _rounded(ms)


def test_spread_is_the_median_distance_from_the_median():
    assert (_spread([5, 5, 9]), _spread([1, 3, 5, 7, 100])) == (0, 2)


@pytest.mark.parametrize(
    ("at_once", "gaps", "is_saturated"), [(0, 0, False), (1, 2, False), (2, 3, True), (3, 3, True), (1, 3, False)]
)
def test_a_job_is_saturated_if_most_gaps_end_with_their_checkpoint(at_once, gaps, is_saturated):
    assert is_saturated == TriggerRhythm((1000,) * gaps, at_once=at_once).is_saturated


@pytest.mark.parametrize(("rest_ms", "at_once"), [(99, 3), (100, 0)])
def test_a_tenth_of_a_second_after_a_checkpoint_is_a_pause(rest_ms, at_once):
    """Less is at once."""
    found = rhythm(points(*[((1000 + rest_ms) * k, 1000) for k in range(4)]))

    assert (at_once, (1000 + rest_ms,) * 3) == (found.at_once, found.gaps)


def test_only_neighbours_with_known_triggers_have_a_gap():
    """One without a time, one that is not later, one whose neighbour is missing."""
    checkpoints = points((0, 5), (1000, 5), (2000, 5), (2000, 5), (3000, 5))
    checkpoints[0] = LogCheckpoint(1, -1, -1, status="COMPLETED", duration_ms=5)
    checkpoints[4] = LogCheckpoint(7, 3000, 3000, status="COMPLETED", duration_ms=5)

    assert rhythm(checkpoints).gaps == (1000,)


def test_a_checkpoint_that_never_ended_has_no_rest():
    """Its gap counts all the same."""
    checkpoints = points((0, -1), (10_000, -1), (20_000, -1))

    assert ((found := rhythm(checkpoints)).interval, found.min_pause, found.at_once) == (10_000, 0, 0)


@pytest.mark.parametrize(("second_ms", "pauses"), [(12_000, True), (9_000, False)])
def test_rests_that_are_more_alike_than_gaps_are_a_pause(second_ms, pauses):
    """Half as spread, of three at least."""
    took = (second_ms, 9_000, 6_000 if second_ms > 9_000 else 9_000, 9_000)
    at = [0]
    for ms in took[:-1]:
        at.append(at[-1] + ms + 3000)
    found = rhythm(points(*zip(at, took, strict=True)))

    assert pauses == (found.min_pause == 3000)


def head(log):
    return " ".join(infer_log(log).comments[""].split())


def test_the_head_counts_what_became_of_checkpoints():
    log = logged((0, 300), (10_000, 100), (20_000, 200), refusals=[LogRefusal(-1)] * 2, restored=1)
    log.checkpoints[4] = LogCheckpoint(4, 30_000, 30_000, status="FAILED", duration_ms=900)
    log.checkpoints[5] = LogCheckpoint(5, 40_000, 40_000, is_savepoint=True, status="COMPLETED", duration_ms=9000)

    assert head(log).endswith(
        "Checkpoints: 3 completed, 1 failed, 2 refused, 1 restores; median duration 200 ms, longest 300 ms."
    )
    assert head(logged()).endswith("Checkpoints: 0 completed, 0 failed, 0 refused, 0 restores.")


def test_a_log_without_vertices_has_a_source_and_an_operator():
    """Whose workload is asked for: with pauses between its checkpoints it keeps up."""
    found = infer_log(logged(*grid(10_000, 200)))
    job = found.document["job"]

    assert job["source"] == {"source": {"rate": "1k/s", "record": "1 kB"}, "parallelism": 1}
    assert job["operator"] == {
        "input": {"source": "hash"},
        "parallelism": 1,
        "service": "1 us",
        "state": {"size": "1 kB"},
    }
    assert comment_of(found, "job.source") == "assumed"
    assert "operator: Which vertices keep how much of the state?" in found.unknown
    assert comment_of(found, "job.operator.state.size").endswith("all of the 1 kB of checkpoint 6 is kept here.")


def test_a_saturated_log_has_a_service_that_makes_barriers_wait_as_long():
    """2 s behind 640 kB in buffers of each of two hops: 1 kB takes 2 s x 1000 / (2 x 655,360)."""
    log = logged(*[(2010 * k, 2000) for k in range(6)], vertices={"Source: a": 2, "Map -> Filter": 3, "Sink: out": 1})
    found = infer_log(log)
    job = found.document["job"]

    assert (job["a"]["source"]["rate"], job["out"]["service"]) == ("unlimited", "1.53 ms")
    assert [vertex["parallelism"] for vertex in job.values()] == [2, 3, 1]
    assert (
        comment_of(found, "job.map+filter" if "map+filter" in job else f"job.{list(job)[1]}") == "chain: Map -> Filter"
    )
    assert comment_of(found, "job.out.service").endswith(
        "that a barrier takes 2,000 ms behind 655,360 bytes on each of 2 hops."
    )
    assert found.document["checkpoint"]["interval"] == "2 s"
    assert "checkpoints follow one another at once, so it is no longer" in comment_of(found, "checkpoint.interval")


def test_the_interval_is_measured_asked_for_or_assumed():
    measured, paused, few = (
        infer_log(log)
        for log in (
            logged(*grid(10_000, 200)),
            logged((0, 9_000), (12_030, 5_000), (20_060, 7_000), (30_080, 12_000), (45_110, 3_000)),
            logged((0, 100)),
        )
    )

    assert (
        comment_of(measured, "checkpoint.interval") == "median of 5 gaps between triggers that no late checkpoint ended"
    )
    assert (paused.document["checkpoint"]["interval"], paused.document["checkpoint"]["min-pause"]) == ("8 s", "3 s")
    assert "the shortest of 4 gaps between triggers: a pause follows each checkpoint" in comment_of(
        paused, "checkpoint.interval"
    )
    assert comment_of(paused, "checkpoint.min-pause") == "median pause after a checkpoint, 4 gaps between triggers"
    assert few.document["checkpoint"]["interval"] == "1 min"


@pytest.mark.parametrize(("took_ms", "timeout"), [(200, "10 min"), (600_001, "600001 ms"), (10**12, "100000 s")])
def test_a_timeout_that_never_struck_is_longer_than_all(took_ms, timeout):
    """Ten minutes, Flink's default, or as long as the longest; no number of a log is beyond three years."""
    found = infer_log(logged((0, took_ms)))

    assert parse_duration(timeout) // (1000 if took_ms == 10**12 else 1) == parse_duration(
        found.document["checkpoint"]["timeout"]
    ) // (10**6 if took_ms == 10**12 else 1)


def expired(*durations_ms):
    log = logged(*grid(10_000, 200))
    for number, ms in enumerate(durations_ms, 10):
        log.checkpoints[number] = LogCheckpoint(
            number, 10_000 * number, 10_000 * number, status="FAILED", duration_ms=ms, reason="expired"
        )
    return infer_log(log)


def test_the_timeout_is_what_expired_checkpoints_took():
    found = expired(30_020, 29_990, 0)

    assert found.document["checkpoint"]["timeout"] == "30 s"
    assert comment_of(found, "checkpoint.timeout") == "trigger to expiry of 2 checkpoints"
    assert expired(3).document["checkpoint"]["timeout"] == "10 ms", "Flink takes no shorter one"


def test_the_storage_of_a_log_is_asked_for_with_what_it_shows():
    """1000 bytes in 200 ms are 5 kB/s; a saturated job shows nothing."""
    calm, saturated = infer_log(logged(*grid(10_000, 200))), infer_log(logged(*[(2010 * k, 2000) for k in range(6)]))

    assert (calm.document["storage"]["bandwidth"], saturated.document["storage"]["bandwidth"]) == ("5 kB/s", "100 MB/s")
    assert comment_of(calm, "storage.bandwidth").endswith(
        "5 kB/s: 1,000 bytes in the 200 ms that a checkpoint takes, as if one task wrote them all."
    )
    assert infer_log(logged()).document["storage"]["bandwidth"] == "100 MB/s"


@pytest.mark.parametrize(("version", "profile"), [("1.17.2", "1.20"), ("2.1.0", "2.x"), ("", "2.x")])
def test_the_profile_of_a_log_is_that_of_its_version(version, profile):
    found = infer_log(logged((0, 100), version=version))

    assert profile == found.document["cluster"]["profile"]
    assert (not version) == ("Which version of Flink runs it?" in found.unknown)


@pytest.mark.parametrize(
    ("checkpoints", "seconds"),
    [
        (grid(10_000, 200), 120),
        (grid(1000, 200), 60),
        (grid(3_600_000, 200), 3600),
        ([(0, 20_000)], 240),
        ([], 60),
        ([(0, 9_000), (12_030, 5_000), (20_060, 7_000), (30_080, 12_000), (45_110, 3_000)], 12 * 10.02),
    ],
)
def test_a_run_of_a_log_has_twelve_checkpoints(checkpoints, seconds):
    """Those come every interval, or after a pause and what one takes.  It lasts a minute to an hour."""
    assert seconds * 10**9 == pytest.approx(
        parse_duration(infer_log(logged(*checkpoints)).document["run"]["duration"]), rel=0.01
    )

"""Where sources wait, seen from checkpoints; what a Flink 2.3 does is said per test."""

from pathlib import Path

import pytest

import sim
from sim.model.schema.study import loads

TEXT = """# When does the barrier leave the source?
version: 1
job:
  src: {source: {rate: unlimited, record: 404 B}, service: 1 us}
  map: {input: {src: rebalance}, service: 500 us}
checkpoint: {interval: 1300 ms, barriers: unaligned}
storage: {bandwidth: unlimited}
run: {duration: 80 s}
"""


def delays_ms(*overrides: str) -> list[float]:
    """The start delays of the source."""
    found = sim.simulate(loads(TEXT, overrides=list(overrides)).scenarios[0]).subtasks
    return found[found["vertex"] == "src"]["start_delay"].tolist()


def test_a_source_that_waits_in_the_mailbox_begins_at_once():
    assert max(delays_ms("run.duration=10 s")) < 20


def test_a_legacy_source_makes_mails_wait_while_it_waits_for_output():
    """40 ms for each buffer.  Measured: 66 to 149 ms in the middle half of 19 checkpoints, mean 93, most 168; cold: mean 255, most 929."""
    found = delays_ms("job.src.source.waits=lock")

    assert sum(found) / len(found) == pytest.approx(110, rel=0.3)
    assert max(found) > 200


def test_a_legacy_source_that_sleeps_lets_mails_in():
    """One record every 600 ms.  Measured, every 700 ms: 2 to 4 ms in 14 checkpoints."""
    assert max(delays_ms("job.src.source.waits=lock", "job.src.source.rate=100/min", "run.duration=20 s")) < 20


def test_a_reader_that_blocks_in_poll_makes_mails_wait_for_its_next_record():
    """One record every 600 ms.  Measured, every 700 ms: 30 to 728 ms in 18 checkpoints, each phase alike."""
    found = delays_ms("job.src.source.waits=poll", "job.src.source.rate=100/min")

    assert sum(found) / len(found) == pytest.approx(300, rel=0.15)
    assert 500 < max(found) < 620


REPORT = Path(__file__).parents[2] / "data" / "reports" / "br13" / "scenario.yaml"
"""FLINK-27789, and SourceStreamTask#init of Flink 2.3.0: a legacy source sets its overdraft buffers to 0."""


def in_flight(*overrides: str) -> list[tuple[int, float]]:
    """(bytes in flight, duration) of each unaligned checkpoint of the report."""
    study = loads(
        REPORT.read_text(),
        overrides=["checkpoint.barriers=unaligned", "cluster.placement=isolated", "run.duration=40 s", *overrides],
    )
    rows = sim.simulate(study.scenarios[0]).checkpoints
    return list(zip(rows["persisted_data"], rows["end_to_end_duration"], strict=True))


@pytest.mark.parametrize("profile", ["1.20", "2.x"])
def test_a_legacy_source_has_no_overdraft_buffers(profile):
    """Whatever `overdraft` says."""
    found = in_flight(f"cluster.profile={profile}")

    assert found == in_flight(f"cluster.profile={profile}", "cluster.network.overdraft=0")
    assert found != in_flight(f"cluster.profile={profile}", "job.src.source.waits=mailbox")


def test_a_legacy_source_fills_a_pool_like_that_of_other_sources():
    """1.5 MB: two pools of twelve buffers at each end of four channels."""
    (legacy, _), (other, _) = in_flight()[-1], in_flight("job.src.source.waits=mailbox")[-1]

    assert legacy == pytest.approx(1_500_000, rel=0.05)
    assert other == pytest.approx(legacy, rel=0.1)

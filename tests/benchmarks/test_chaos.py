"""A sweep on a real cluster, disturbed as badly as can be."""

import pytest

SCENARIO = """\
# Does anything get lost?
version: 1
job:
  source: {source: {rate: 2k/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 100 us, parallelism: 2}
checkpoint: {interval: 1 s, barriers: [aligned, unaligned]}
run: {duration: 20 s, replications: 50}
"""


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_not_a_byte_differs_when_everything_is_killed_once(tmp_path):
    """An executor, a Python worker and the driver, one after the other; called again, the sweep runs what is missing and no more."""
    pytest.importorskip("pyspark")
    from benchmarks.chaos import disturbed

    scenario = tmp_path / "job.yaml"
    scenario.write_text(SCENARIO)
    damage = disturbed([str(scenario)], tmp_path)

    assert (150, True) == (damage.cells, damage.same), damage
    assert ["executor", "Python worker", "driver"] == list(damage.kept_at)
    assert damage.retried >= 1, damage
    assert damage.ran_twice <= damage.cells // 5, damage

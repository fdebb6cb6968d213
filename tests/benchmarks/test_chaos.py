"""A sweep on a real cluster, disturbed as badly as can be: `python -m benchmarks.chaos` on a sweep file, small."""

import pytest

JOB = """\
version: 1
job:
  source: {source: {rate: {trace: rates.csv, column: rate}, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 100 us, parallelism: 2}
checkpoint: {interval: 1 s, barriers: aligned}
run: {duration: 20 s}
"""
SWEEP = """\
# Does anything get lost?
scenario: job.yaml
vary: {checkpoint.barriers: [aligned, unaligned], run.duration: [20 s, 4 min]}
replications: 15
"""


@pytest.mark.slow
@pytest.mark.nightly  # `test_kills.py` and `test_sweep_of_a_study.py` show it of single processes
@pytest.mark.xdist_group("spark")
def test_not_a_byte_differs_when_everything_is_killed_once(tmp_path):
    """An executor, a Python worker and the driver, one after the other; called again, the sweep runs what is missing and no more."""
    pytest.importorskip("pyspark")
    from benchmarks.chaos import disturbed

    (tmp_path / "job.yaml").write_text(JOB)
    rates = (f"{second / 5},{4000 + second % 10}" for second in range(1250))  # long enough to be broadcast
    (tmp_path / "rates.csv").write_text("\n".join(["t_s,rate", *rates, ""]))
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(SWEEP)
    damage = disturbed([str(sweep)], tmp_path)

    assert (damage.cells, damage.same) == (90, True), damage
    assert damage.digests[0] == damage.digests[1]
    assert list(damage.kept_at) == ["executor", "Python worker", "driver"]
    # How many cells run again depends on the machine; that none of those with a row does so does not.
    assert damage.ran_twice == 0, damage

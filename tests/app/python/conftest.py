"""A small job under two kinds of barriers."""

import pytest

import sim

JOB = """
# Which barriers?
version: 1
job:
  src: {source: {rate: 2k/s, record: 1 kB}, parallelism: 2}
  sink: {input: {src: hash}, service: 300 us, parallelism: 2}
checkpoint: {interval: 1 s, barriers: [aligned, unaligned]}
cluster: {placement: isolated}
run: {duration: 4 s}
"""


@pytest.fixture(scope="session")
def study():
    return sim.loads(JOB, "small")


@pytest.fixture(scope="session")
def results(study):
    return study.run(jobs=1)

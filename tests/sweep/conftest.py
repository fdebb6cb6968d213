"""A job small enough to be simulated in a blink, under several strategies."""

import pytest

from sim.scenario import loads

TEXT = """\
# Does it matter how barriers travel?
version: 1
job:
  source: {source: {rate: 200/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2}
checkpoint: {interval: 1 s, barriers: [aligned, unaligned]}
run: {duration: 3 s}
"""


@pytest.fixture
def study():
    return loads(TEXT, "tiny")

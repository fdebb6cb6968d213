"""A small job for tests of sweeps: two vertices, and a run that takes no time."""

SCENARIO = """\
version: 1
job:
  source: {source: {rate: 200/s, record: 100 B}}
  sink: {input: {source: hash}, service: 100 us}
checkpoint: {interval: 1 s, barriers: aligned}
run: {duration: 5 s}
"""

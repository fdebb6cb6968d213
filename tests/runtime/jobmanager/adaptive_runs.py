"""A job under the adaptive scheduler that loses a task manager, for tests of several rooms."""

from tests.scenarios import run_scenario

JOB = """
version: 1
job:
  log:     {source: {rate: 100/s, record: 1 kB}, parallelism: 2}
  profile: {input: {log: hash}, service: 2 ms, state: {size: 4 MB}, parallelism: 2}
checkpoint: {interval: 5 s}
cluster: {placement: spread}
restart: {scheduler: adaptive, replacement: 62 s, heartbeat-interval: 2 s}
faults: [{task-manager: 0, at: 12 s}]
run: {duration: 130 s}
"""


def run(*overrides, job=JOB, engine="compiled"):
    return run_scenario(job, overrides=overrides, engine=engine)

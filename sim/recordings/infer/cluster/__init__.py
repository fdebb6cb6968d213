"""The hosts of a job: the cores that its task threads share.

`sim.recordings.infer.scenario` calls it, once all times of records are there.  It knows task managers and busy threads.
"""

"""Shapes in a history of sizes: where growth comes to its limit.

`sim.recordings.infer.state` calls it.  It knows numbers only, and no answer of the job.
"""

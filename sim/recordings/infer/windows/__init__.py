"""The windows of a vertex: what the plan says of them, how its state rises and falls with them, and what they do to its counters.

`sim.recordings.infer.scenario` calls it, behind everything else that is told of a vertex.  It knows answers of the job, and no observation.
"""

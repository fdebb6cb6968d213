"""`faults:`, `restart:` and `rescale:`, as they are written and as the model has them.

`sim.scenario.build` calls the builder.  It knows of the job its vertices and their parallelism.
"""

"""`cluster:`, as it is written and as the model has it.

`sim.scenario.build` calls the builder.  It knows no job.
"""

"""`job:`: vertices, edges, rates and their traces, as they are written and as the model has them.

`sim.scenario.build` calls the builder.  It knows neither checkpoints nor storage.
"""

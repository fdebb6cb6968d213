"""`actions:`: savepoints and the stop of the job, as they are written and as the model has them.

`sim.scenario.build` calls the builder.  It knows no other section.
"""

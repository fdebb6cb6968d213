"""`checkpoint:`, as it is written and as the model has it.

`sim.scenario.build` calls the builder.  It knows of the job its edges, and of state and sinks the keys they have here.
"""

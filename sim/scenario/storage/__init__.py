"""`storage:`: flat, a distributed file system or an object store, as it is written, as the model has it, as Flink writes it.

`sim.scenario.build` calls the builder.  It knows no job.
"""

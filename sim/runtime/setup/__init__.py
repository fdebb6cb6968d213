"""Before a job instance runs: the scenario lowered to what the plane needs, a snapshot dealt out to another parallelism.

`run` calls it.  It knows nothing that happens in time.
"""

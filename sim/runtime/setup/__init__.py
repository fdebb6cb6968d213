"""Before a job instance runs: the scenario lowered to what the plane needs, a snapshot dealt out to another parallelism.

Called by `run`.  Knows nothing that happens in time.
"""

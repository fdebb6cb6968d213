"""How finely a job is simulated: a scenario that takes several records for one, and what forbids it.

Readers of scenarios and the runtime call it.  It knows no plane, and no run.
"""

"""A running job, watched: each new checkpoint is held to a forecast; what changes about the job is told, kept and published.

The command `watch` calls it with the answers of a JobManager.  It knows forecasts and their factors, asks nothing, and makes no scenario.
"""

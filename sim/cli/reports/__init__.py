"""What several verbs print about results of other rooms: truth tables, backtests, whether predictions were held to such a job.

The verbs of the command call it.  It knows the rooms whose results it prints, and no verb.
"""

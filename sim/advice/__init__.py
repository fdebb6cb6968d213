"""What `ckptsim advise` does: settings of a job are tried, judged, and one of them is advised, with what nobody knows yet.

The command `advise` calls it.  Trials run as sweeps do; it knows nothing of Spark.
"""

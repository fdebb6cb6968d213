"""The command `advise`: it tries settings of a job, judges them, advises one, and says which unknown inputs matter.

The command `advise` calls it.  Trials run as sweeps do; it knows nothing of Spark.
"""

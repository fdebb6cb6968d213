"""What `ckptsim run` does: strategies side by side, what a scenario expects of them, and the folder of their results.

The command `run` and notebooks call it.  It knows no sweep file and no Spark.
"""

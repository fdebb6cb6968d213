"""The command `sweep`: the rows of many cells, kept in a folder as they come, and the answer to the sweep file's question.

The command `sweep`, notebooks and `advice` call it; `traces` uses its way to Spark.  It knows nothing of advice.
"""

"""Cells: the single runs of a study.  Planned, named by content, run on the cores of this machine, each summarised as a row.

The rooms `comparison`, `sweeps` and `advice` call it.  It knows neither folders of results nor Spark, and no file but the scenario's.
"""

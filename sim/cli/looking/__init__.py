"""The verbs that look at one run or its results: explain, timeline, report.

The command calls them.  The room knows what explains, draws and writes, and nothing of how a run goes.
"""

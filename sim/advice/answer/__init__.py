"""What an advice says: a screenful to act on, the configuration as a difference, patches for a cluster, and what to watch afterwards.

The report of an advice calls it.  It knows the race, its levers and Flink's keys, and runs nothing.
"""

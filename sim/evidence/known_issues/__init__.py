"""Known defects of Flink and of connectors: a catalogue with the versions and the jobs that each affects.

`sim/verbs` calls it.  It knows scenarios and runs nothing.
"""

"""What else can be changed about a job than barriers and interval: state, data in flight, machines; each lever is tried by simulation.

The report of an advice calls it where no barriers and no interval keep the limits.  It knows the race and its trials, and no command.
"""

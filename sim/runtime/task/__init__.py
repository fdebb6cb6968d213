"""A task: threads, snapshots, channel state, operators, keyed state, the end."""

"""The JobManager: coordinator, recovery, restores, files of snapshots, faults."""

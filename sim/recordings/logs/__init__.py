"""What the log of a JobManager tells of a job's checkpoints."""

"""The checkpoints of a real job: critical paths, causes, what they have in common."""

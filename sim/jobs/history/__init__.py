"""The checkpoints of a real job: critical paths, causes, common features."""

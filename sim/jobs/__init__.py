"""Real Flink jobs: readers of REST answers and logs, inference of a scenario, their checkpoints, watching, validation."""

"""Real Flink jobs: readers of REST answers and logs, inference of a scenario, checkpoint history, monitoring, validation."""

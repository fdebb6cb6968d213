"""Scenario files: YAML to the model and back, with line numbers in every message."""

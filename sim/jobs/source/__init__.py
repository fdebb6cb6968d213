"""Readers of a job's REST API, saved answers and logs.  Values and checks only; nothing is inferred."""

"""Cells on Spark: the session, what runs in an executor, rows as they come."""

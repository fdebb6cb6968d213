"""Rates from tables and from Prometheus: metrics, columns, formats of times, unknown values."""

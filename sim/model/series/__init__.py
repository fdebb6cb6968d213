"""Rates from tables and from Prometheus: detects the time and value columns and their units."""

"""Loads as monitoring keeps them: answers of Prometheus, frames of Grafana, offsets of Kafka.  Each becomes a table of rates.

The readers of scenarios, sweeps and traces call `documents` and `offsets`.  The room knows no source of a job but by its labels.
"""

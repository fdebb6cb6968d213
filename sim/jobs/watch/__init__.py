"""Monitoring of a running job: each checkpoint is compared with a forecast; changes are reported and exported."""

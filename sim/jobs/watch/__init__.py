"""A running job, watched: each checkpoint is compared with a forecast; changes are reported and exported."""

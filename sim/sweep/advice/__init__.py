"""What to do about a job: what is tried, how it is judged, how it is told."""

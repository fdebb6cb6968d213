"""A scenario from the configuration of a recorded job."""

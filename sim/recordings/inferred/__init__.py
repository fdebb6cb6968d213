"""A scenario from what was measured of a job, with a word on where each value comes from."""

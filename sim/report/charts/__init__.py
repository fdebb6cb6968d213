"""Charts as values, and their two pictures: one to hover, zoom and scrub in a browser, and one that stands still.

The pages of `sim.report` call it.  It knows tidy tables, and nothing of checkpoints.
"""

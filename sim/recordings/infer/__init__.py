"""A source -> the scenario of its job.  Every value names its origin; every gap becomes a question.

The commands `import` and `advise` call it.  It reads what `source` has checked, and knows nothing of observations.
"""

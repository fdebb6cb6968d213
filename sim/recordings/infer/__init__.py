"""A source -> the scenario of its job, with a word on where each value comes from and a question where nothing says it.

The commands `import` and `advise` call it.  It reads what `source` has checked, and knows nothing of observations.
"""

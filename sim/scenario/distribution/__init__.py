"""Distributions, as they are written and as the model has them.

Every section with a quantity that is drawn calls it.  It knows no section.
"""

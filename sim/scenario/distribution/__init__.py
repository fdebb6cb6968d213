"""Distributions as they are written -> the model's.

Every section with a quantity that is drawn calls it.  It knows no section.
"""

"""Quantities, each once: what is observed of jobs, real or simulated, and the numbers about runs that tables of results have.

Every room that compares, tabulates or prints quantities calls it.  It knows names, units, words and noise, and no value.
"""

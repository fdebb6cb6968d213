"""Readers of the outside world, one folder per kind of source, and what they share: typed values, checked, in bounded memory.

The rooms `infer` and `observe` read what comes from here.  It knows no scenario.
"""

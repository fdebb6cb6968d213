"""The scenario of a recording of our own: what was configured, nothing that was observed.

`validation` and `calibration` call it.  What a scenario cannot say is named here, never dropped.
"""

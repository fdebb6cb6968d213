"""The scenario of our own recording: its configuration, and nothing that was observed.

`validation` and `calibration` call it.  It knows no observation.  Features that a scenario lacks are named, never dropped.
"""

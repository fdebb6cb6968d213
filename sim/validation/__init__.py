"""Predictions against observations: the truth table of a recording, the errors, and whether predictions order runs correctly.

The commands `validate` and `calibrate` call it, and the room `envelope`.  It knows recordings and runs, and estimates no constants.
"""

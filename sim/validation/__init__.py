"""Predicted against observed: the truth table of a recording, how far off predictions are, and whether they put runs in the right order.

The commands `validate` and `calibrate` call it, and the room `envelope`.  It knows recordings and runs, and estimates no constants.
"""

"""Recordings -> the constants of their environment, and whether these hold for other recordings.

The command `calibrate` calls it.  It knows predictions as tables, and simulates nothing itself.
"""

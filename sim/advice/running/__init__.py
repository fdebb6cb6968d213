"""Trials as runs: what they cost, how long they may take, and what is handed over when a bound is reached.

The race and the verb call it.  It knows cells and their store, and no setting.
"""

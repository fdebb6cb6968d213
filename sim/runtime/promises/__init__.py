"""What checkpoints promise, watched in a run: accounts of records, state and transactions, and the checks of them.

A run calls it at each step.  It knows what checkpoints hold, and changes nothing.
"""

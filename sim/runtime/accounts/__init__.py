"""The accounts of a run: each hears what happens, keeps the facts apart from what checkpoints hold, and puts them before laws.

Hosts call it through `Checks`.  It knows the context of a job instance and the laws of `sim.checkers`, and changes nothing.
"""

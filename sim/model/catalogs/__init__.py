"""What can be added to, as records by name: ways of barriers, state backends, ways to ship records.

Scenarios, advice, the envelope and the protocol call it.  It knows no code behind a record.
Kinds of storage stand beside their options in `sim.model.storage`.
"""
